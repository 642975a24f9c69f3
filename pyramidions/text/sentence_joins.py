"""Tells where a splitter of sentences cut behind an abbreviation or an ordinal, in any language."""

import re
from collections.abc import Sequence

#: Languages that write "19." for the 19th; German goes on with a noun in upper case.
ORDINALS = frozenset("az bs cs da de et eu fi hr hu is lt lv mk no pl sk sl sr tr".split())  # noqa: SIM905, shorter
# Those among them that write the number of a ruler in front of the name.
_RULERS = frozenset(["az", "eu", "hu", "tr"])
# Abbreviations by what stands behind them, in lower case and without their last stop. A number, as in "Fig. 3",
# "Vol. IV" and "Eq. (2)":
_BEFORE_NUMBERS = frozenset(
    """
    abb abs abschn afb afd alg alin alt anm apart apdo app appr approx appx aprox art artt arts att aufl avd bab
    bd bde bek bl bls blz bsp ca cap capp caps cca ch chap chaps cl col cols cor def defs diagr eq eqn eqns eqs ex
    exp fasc fig figs fn gbr gl hal hfst ill irud jg joon hình kap köt lám lem lent lpp luku marg max min mynd no
    nos nota nr nrs núm núms num obr odst ok old oldal op par para paras pág pàg págs pàgs pag pagg pags pav pg
    pgs pkt pogl por pos poz pp prop příl príl přibl pribl ptk qu ref refs rem resp roč rozdz ryc rys sec secs
    sect sch sects sekt séc sez sid str tab tabl tábl tabs taf taul tav tbl thm thms tom toč točk ust vers vol
    voll vols vyd wyd yak yakl zák ziff zob ábr čís éd úp şek ал гл изд ил напр ок пар поз прибл прил прим разд
    рис стр табл фиг чл бр вып див мал розд αρ αριθ άρθρ εικ κεφ παρ πίν σελ σχ τόμ ج رقم ش شكل شکل ص अनु क्र
    चित्र पृ सं table figure section equation chapter
    """.split()  # noqa: SIM905, a list has a line for each word
)
_UNITS = frozenset({"min", "sec", "max", "ca"})  # behind a number
# English and German words among them that may end a sentence in lower case, and those that may in any language.
_WORDS = frozenset("alt app art cap col gl no nos old op par pos prop tab".split())  # noqa: SIM905, shorter
_WHOLE = frozenset(["table", "figure", "section", "equation", "chapter"])
# Something in lower case, as in "etc. and"; a sentence may end so, too.
_INSIDE = frozenset(
    """
    al approx av avg deg dept edn est etc evtl hrs mill oz std temp usw janv févr avr juil sept oct nov déc ene
    abr ago dic giu lug ott tys тыс млн млрд руб Apr Aug Ave Blvd Bros Calif Cie Co Colo Conn Corp Dec Dept Feb
    Fri Inc Ital Jan Jul Jun Lat Ltd Mar Mass Minn Mon Nov Oct Okt Penn Plc Rd Sat Sep Sept Std Sun Tenn Thu Thurs
    Tue Tues Wash Wed Wis
    """.split()  # noqa: SIM905, a list has a line for each word
)
# A name, or anything: no sentence ends so. Those of all languages are in upper case or hold a stop or a "v".
_BEFORE_NAMES = {
    language: frozenset(words.split())
    for language, words in {
        "": "Supp Suppl Dr Prof Mr Mrs Messrs Mme Mlle Mgr Sr Sra St Ste Mt Ft Lt Sgt Capt Col Gen Gov Rev Hon Sen Rep",
        "cs": "prof doc ing dr sv tř nám tzv tzn např mj tj resp ul",
        "da": "hr fru frk dr prof bl.a f.eks fx ca vedr jf",
        "de": "hl sog inkl exkl zzgl abzgl einschl ggf bzw bspw vgl insb z.b d.h gem geb fa hr hrn fr frl dipl abg",
        "el": "κ κα κος Κ δρ Δρ καθ Καθ Αγ αγ π.χ δηλ βλ Βλ λ.χ",
        "es": "D Sres Sras Srta Dña Ud Uds Vd Vds sr sra dr dra prof Dra Profa p.ej Mtro Lic",
        "et": "prof dr hr pr nt vt s.t st",
        "fi": "prof tri toht esim ks ts mm vrt n",
        "fr": "M MM Mmes Mlles Me Pr Dre Stes cf env",
        "hi": "डॉ प्रो श्री सुश्री",
        "hr": "dr prof g gđa gđica sv tzv npr tj ul mr",
        "hu": "dr id ifj özv prof szt ún pl Szt ld vö",
        "id": "dr drs prof ir H Hj Tn Ny dsb tsb",
        "is": "t.d þ.e sbr dr prof hr fr",
        "it": "sig sigg sig.ra sig.na dott dott.ssa prof avv ing Sig Sigg Sig.ra Dott Avv On Arch Rag Geom S p.es cfr",
        "lt": "prof dr šv pvz žr vad Žr Šv",
        "lv": "prof dr piem sk sv",
        "nl": "dhr mevr mw Dhr Mevr Mw ds mr ir prof dr bijv o.a d.w.z resp m.b.t nl vgl incl excl zgn",
        "no": "hr fru frk dr prof bl.a f.eks jf",
        "pl": "prof dr hab inż mgr płk gen kpt ks św ul al im bp abp tzw tzn tj np m.in zob por pt pl",
        "pt": "Sra Dra Profa Srs Exmo Exma sr sra dr dra prof p.ex V.Exa Eng",
        "ro": "dl dna dr prof sf Dl Dna D-na D-l Sf acad ing etc",
        "ru": "проф акад доц г-н г-жа им св ул пр пл Проф Акад т.е т.к т.н напр см ср См Ср тов гр",
        "sk": "prof doc ing dr sv nám tzv tzn napr tj resp ul",
        "sl": "dr prof g ga gdč sv tj npr ul mag",
        "sr": "dr prof g sv tzv npr ul др проф г св тзв нпр ул",
        "sv": "prof dr bl.a t.ex d.v.s dvs s.k hr fr jfr",
        "tr": "M.Ö M.S Doç Yrd Av Sn Hz Bkz bkz örn Örn vb Mah Cad Sok",
        "uk": "проф акад доц ім св вул див Див напр тзв т.зв ст гр",
        "vi": "TP Tp ThS TS GS PGS", "ar": "د أ م أ.د", "fa": "د ر.ک", "ur": "ڈاکٹر",
    }.items()
}  # fmt: skip
# German words before an ordinal, and words that begin a sentence behind a number that is none.
_ARTICLES = frozenset(
    """
    ab am auf beim das dem den der des die diese diesem diesen dieser dieses ein eine einem einen einer eines fürs
    ihr ihre ihrem ihren ihrer im in ins jede jedem jeden jeder jedes mein meine meinem meinen meiner sein seine
    seinem seinen seiner seit und unser unsere unserem unseren unserer vom zum zur
    """.split()  # noqa: SIM905, a list has a line for each word
)
_BEGINNINGS = frozenset(
    """
    aber alle als am an auch auf aus bei beim bis da dabei daher damit danach dann das den der deshalb die dies
    diese dieser dieses doch dort ein eine einige er erst es für hier ich ihr ihre im in ist jede jeder jedoch
    kein keine man mit nach nachdem nicht noch nun nur ob obwohl seine seit seitdem sie so später trotz über um und
    unter viele vom von vor während wann warum was weil wenn wer wie wir wo zu zudem zum zur zwischen
    """.split()  # noqa: SIM905, a list has a line for each word
)
_WIDTH, _PARTS = 60, 4  # characters that are looked at on either side, and parts that hold so many
_NOTE = re.compile(r"[(\[][\d\s,–-]{1,20}[)\]]$")  # "[5]" behind "et al."
_OPENING = re.compile(r"[(\[{'’\"“„«]")
_NUMBER = re.compile(r"[(\[]?(?:[A-Z]{0,2}\.?\d|[IVXLC]{2,6}\b|[A-Z]\b(?![.’']))")
_CAPITALISED = re.compile(r"[\W\d_]*(?!\w[A-Z]{2})[^\W\d_a-z]")
_DIGIT, _DOTTED = re.compile(r"[(\[]?(?:\d|[IVXLC]{2,6}\b)"), re.compile(r"[^\W\d_]+([.-]+[^\W\d_]+)*")
_ORDINAL, _ROMAN = re.compile(r"\d{1,4}"), re.compile(r"[IVX]{1,5}")
_SPECIAL = re.compile(r"[^\W\d_]+[\dA-Z-]")  # "p53", "mRNA" and "t-test" begin sentences
_VOWEL = re.compile("[aeiouyà-æè-ïò-öø-ýÿāăąēĕėęěīĭįıōŏőœūŭůűųǎаеёиоуыэюяіїєαεηιουωάέήίόύώ]", re.IGNORECASE)
_MOST_CONSONANTS = 4
_HEBREW = "\u0590"  # from here on, scripts write no vowels, or write them as marks


def goes_on(begun: Sequence[str], following: str, language: str) -> bool:
    """Return whether a sentence, in the parts that it was cut into, goes on in what follows.

    So it does behind an ordinal, in languages that write it with a stop; and behind an abbreviation, in lower case, or
    with what such ones stand before: a number behind "Fig.", a name behind "Prof.". Where a sentence begins in lower
    case or behind a heading in capitals, as in some corpora, only a number says so.
    """
    words = _NOTE.sub("", "".join(begun[-_PARTS:])[-_WIDTH:].rstrip()).split()
    following = following[:_WIDTH].lstrip()
    if not words or not words[-1].endswith(".") or not following:
        return False
    before, word = words[-2] if len(words) > 1 else "", _OPENING.split(words[-1][:-1])[-1]
    is_lower = following[0].islower()
    if language in ORDINALS and (_ORDINAL.fullmatch(word) or _ROMAN.fullmatch(word)):
        return is_lower or _is_named(word, before, following, language)
    is_word = word in _WHOLE or (word in _WORDS and language in ("en", "de"))
    takes_number = word.lower() in _BEFORE_NUMBERS and not is_word
    if not _CAPITALISED.match(begun[0][:_WIDTH]):
        return takes_number and _DIGIT.match(following) is not None
    is_abbreviation = _is_abbreviation(word)
    if any(form in _BEFORE_NAMES.get(code, ()) for code in ("", language) for form in (word, word.lower())):
        return following[0].isalnum() or _NUMBER.match(following) is not None
    if is_lower:
        return takes_number or word in _INSIDE or (is_abbreviation and not _SPECIAL.match(following))
    # "It took 5 min. 20 of them stayed."
    is_unit = before[-1:].isdigit() and (word in _UNITS or not takes_number)
    if is_unit or not (takes_number or (is_abbreviation and (word[0].islower() or word[1:].islower()))):
        return False
    return (_NUMBER if takes_number else _DIGIT).match(following) is not None


def _is_named(word: str, before: str, following: str, language: str) -> bool:
    """Return whether what an ordinal counts follows in upper case, as in "der 2. Weltkrieg" and "IV. Béla"."""
    if not following[0].isupper():
        return False
    if language == "de":
        first = re.split(r"\W", following, maxsplit=1)[0].lower()
        is_counted = before.lower() in _ARTICLES or not before or before.endswith(".")
        is_year = word.isdigit() and len(word) > 3
        return not is_year and is_counted and first not in _BEGINNINGS
    return (not before or language in _RULERS) and _ROMAN.fullmatch(word) is not None


def _is_abbreviation(word: str) -> bool:
    """Return whether a word looks like an abbreviation: a letter, letters with stops, or few consonants."""
    if "." in word[1:] or len(word) == 1:
        return _DOTTED.fullmatch(word) is not None
    is_short = len(word) <= _MOST_CONSONANTS and word.isalpha() and not word.isupper()
    return is_short and word < _HEBREW and not _VOWEL.search(word)
