"""Which sentences of a document can stand in a summary at all."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from string import ascii_lowercase
from typing import Any

import numpy as np

from pyramidions.text.normalization import STOPS, UNSPACED
from pyramidions.text.outline import Outline
from pyramidions.text.turns import with_speakers
from pyramidions.text.words import count_words


class _Search:
    """Looks for a pattern, each of whose branches holds one of some words; the words are found sooner."""

    def __init__(self, pattern: re.Pattern[str], words: str) -> None:
        self._pattern, self._words = pattern, words.split()

    def is_in(self, text: str) -> bool:
        for word in self._words:  # `any` takes twice as long
            if word in text:
                return self._pattern.search(text) is not None
        return False


LEAST_WORDS = 3
#: The same in a dialogue, fillers not counted.
LEAST_SPOKEN_WORDS = 8
#: The same, as a share of those of the median sentence.
LEAST_SHARE = 0.25
_BACK_MATTER = re.compile(
    r"\W*(\d+\.?\s+)?(references|bibliography|works cited|acknowledge?ments?|(licen[cs]e|copyright)( notice)?|copying|"
    r"gnu .{0,20}licen[cs]e\b.{0,60}|"
    r"key ?words?|index terms|(electronic )?supplement(ary|al) (material|information)|literatur(verzeichnis)?|"
    r"danksagung|r[ée]f[ée]rences( bibliographiques)?|bibliographie|remerciements|referencias|bibliograf[íi]a|"
    r"agradecimientos|refer[êe]ncias|riferimenti|литература|список литературы|благодарности|"
    r"参考文献|参考資料|謝辞|致谢|致謝|參考文獻|literatuur|referenser|lähteet|literatura|ringraziamenti|agradecimentos|المراجع|"
    r"संदर्भ)\W*",
    re.IGNORECASE,
)
# Around the text of a book, in capitals: before and behind it are terms of use.
_BOOK = re.compile(r"\*{3} ?(START|END) OF TH(?:E|IS) PROJECT GUTENBERG EBOOK\b")
#: What stands for a citation where a corpus took the citations out.
CITATION = re.compile(r"\s?\[?<cit>\]?")
_OWNED = re.compile(r"©.{0,80}\b\d{4}\b")
_ADDRESS, _ADDRESS_MARKS = re.compile(r"://|^www\.|@|^\W*doi:|\w_\w"), (":", "@", "_", "www")
# Notices that stand in sentences of their own, in any section, in lower case: a pattern that ignores case is slow.
_NOTICE = re.compile(
    r"all rights reserved|alle rechte vorbehalten|tous droits réservés|todos (los derechos|os direitos) reservados|"
    r"tutti i diritti riservati|wszelkie prawa zastrzeżone|alle rechten voorbehouden|все права защищены|版权所有|"
    r"licensee biomed central|creative commons|under the terms of the .{0,100}\blicen[cs]e|"
    r"hereby grants? permission|permission (is (hereby )?granted|vous est donnée)|se (concede|otorga) permiso|"
    r"^\W*((copyright|©|\(c\)) ?){1,2}(the )?\d{4}|^\W*copyright (c|©|\(c\)) |"
    r"redistributions? (and use )?(in|of) (source|binary)|this software is provided|distribute verbatim copies|"
    r"endorse or promote products derived|as published by the free software foundation|"
    r"wish(es)? to thank\b|"
    r"^\W*(this|diese|ce|este) (e-?mail|message|nachricht|courriel|correo|mensaje)\b.{0,60} (is|are|ist|est|es|may be) "
    r".{0,40}\b(confidential|vertraulich|confidentiel|confidencial)\b|\bif you are not the (intended|named) recipient|"
    r"\bnicht der (richtige|beabsichtigte|vorgesehene) (adressat|empfänger)|"
    # "For more information, see the manual." points elsewhere, whatever it names.
    r"^\W*(for|to) [^,.]{0,100}, (please )?(see|refer to|visit)\b|"
    r"^\W*for (more|further) [^,.]{0,100}, (please )?(call|contact|talk to)\b|"
    r"^\W*(please )?(see|refer to) (also\b|here\b|(the|our|section|chapter|appendix|figure|table|page|https?:))|"
    r"^\W*(weitere|nähere|mehr) (informationen|details|hinweise|angaben)\b.{0,80}\b(finden sie|unter)\b|"
    r"^\W*click here for\b|^\W*(see )?(also )?additional files? (\d|<dig>)|"
    r"^.{0,60}\b(supplement(ary|al) \w+|supporting information|additional files?) (\S+ ){0,3}(is|are|can be) "
    r"(freely |also |publicly )?(available|found|accessed)"
)
_NOTICES = _Search(
    _NOTICE,
    "reserv réserv vertraulich confiden recipient adressat empfänger "
    "vorbehalten riservati zastrzeżone voorbehouden защищены 版权所有 licen commons permi copyright © "
    "(c) redistribution software verbatim endorse wish see refer visit call contact talk weitere nähere mehr click "
    "additional supplement supporting",
)
# What a site tells its readers, in lower case, by language: of its cookies, of scripts and of their address, to whom it
# speaks, and pointers to other pages. News about such things say the same words in another order.
_OF_SITE = re.compile(
    "|".join(
        [
            r"\b(?:we|our partners|(?:this|our) (?:web)?(?:site|page)) (?:may |also )?uses? (?:\S+ (?:and|or) )?"
            r"(?:our own |only |necessary |essential |technical |tracking |third[- ]party )?cookies\b|"
            r"\bour use of cookies\b",
            r"\byou\b.{0,40}\buse of cookies\b|^\W*cookie (?:policy|settings)",
            r"\b(?:this (?:page|site|post|article)|we) \w{2,8} affiliate link",
            r"\b(?:je|uw) e-?mail(?:adres)? wordt niet\b",
            r"(?:\bplease|\bmust|\bneed to|^\W*)\b ?(?:enable|activate|turn on) javascript|^\W*javascript is disabled",
            r"\byour e-?mail(?: address)? will not be\b|^\W*(?:subscribe|sign up)\b.{0,40}\bnewsletter",
            r"\b(?:wir|diese (?:web)?(?:seite|site)) (?:verwende|nutze?)[nt] (?:auf \S+ \S+ )?(?:\w+e )?cookies\b",
            r"\bstimm\w{1,3} (?:du|sie)\b.{0,40}\bcookies\b|\b(?:deine|ihre) e-?mail-?adresse wird nicht\b",
            r"(?:\bbitte|^\W*) ?aktivier\w{1,3} (?:sie )?javascript|^\W*javascript (?:aktivieren|ist deaktiviert)",
            r"^\W*(?:abonnier|meld)\w{1,3} (?:sie|dich|jetzt|unser)\b.{0,40}\bnewsletter",
            r"\b(?:nous|(?:ce|notre) site) utilis\w{1,4} (?:des |les )?cookies\b",
            r"\b(?:activez|veuillez activer) javascript|^\W*(?:abonnez|inscrivez)-vous\b.{0,40}\bnewsletter",
            r"(?:^\W*(?:utilizamos|usamos)|\best[ea] (?:sitio|site|web)(?: web)? (?:usa|utiliza)) (?:\w+ )?cookies\b",
            r"\b(?:su|tu|seu) (?:\w+ de )?(?:e-?mail|correo(?: \w+)?) n[oã]o? será\b",
            r"\b(?:active|ative|habilite) (?:o )?javascript|^\W*(?:suscr[ií]b[ea]|assine|inscreva).{0,40}\bnewsletter",
            r"\b(?:questo sito|utilizziamo|usiamo)(?: \w+){0,2} cookies?\b|^\W*iscriviti\b.{0,40}\bnewsletter",
            r"(?:\bużywamy|\bta strona używa)(?: \w+){0,4} cookies\b|^\W*zapisz się\b.{0,40}\bnewsletter",
            r"\b(?:(?:wij|deze (?:web)?site) gebruik\w{1,2}|(?:vi|denna webbplats) använder)(?: \w+){0,2} cookies\b",
            r"\b(?:tuo indirizzo|twój adres|ваш адрес) e-?mail (?:non sarà|nie zostanie|не будет)\b",
            r"\bvotre (?:adresse )?e-?mail ne sera\b|\b(?:мы|наш сайт|этот сайт) использу\w{2}(?: \w+){0,2} cookies?\b",
        ]
    )
)
_OF_SITES = _Search(_OF_SITE, "cookie javascript mail newsletter affiliate correo")
# What such a notice begins with.
_SITE_BEGINS = re.compile(
    r"\W*(?:read (?:(?:more|next)(?: (?:about|on|here|at|from)\b|:|\W*$)|also:)|(?:photos?|image) ?[:：©]|"
    r"(?:lesen sie|lies) (?:auch|mehr|hier|jetzt)\b|bild(?:quelle|rechte)? ?[:©]|"
    r"(?:à )?lire aussi\b|crédit(?: photo)? ?:|"
    # Lee and Lea are names, too.
    r"le[ae] también(?::| (?:el|la|los|las|más|sobre|otr[oa]s?|est[aeo]s?|nuestr\w+)\b)|fotos? ?[:©]|"
    r"(?:leia (?:mais|também)\b|leggi anche\b|czytaj (?:też|także)\b|fot\.|(?:fot|zdjęcie|фото) ?[:©])|"
    r"(?:lees ook|läs (?:också|även))\b|читайте также\b)"
)
_SUPPORTED = re.compile(r"\b(work|study|research|project|authors?)\b.{0,60}\bsupported\b.{0,60}\bgrants?\b")
_PRODUCED = re.compile(r"(?i:produced by) [A-Z]\S{0,30} [A-Z]\S{0,30}$")
# A credit or a pointer, such as "(See below.)".
_BRACKETED = re.compile(r"[(（][^()（）]*[)）][.。]?")
# The number of the next entry, in a table of contents or a list.
_NEXT_NUMBER = re.compile(r"\s\d{1,3}(\.\d{1,3}){2,4}\.$|: \(?\d{1,2}[.)]$")
# The same at the beginning of an entry.
_NUMBERED = re.compile(r"\d{1,2}(\.\d{1,2}){1,3}\.? +[A-ZÀ-ÝΑ-ΩА-Я]")
# A caption within a sentence, unless the word before refers to it.
_CAPTION = re.compile(
    r"(\b(fig(ure|\.)|tab(le|elle|leau|la|\.)|abb(ildung|\.)|figura|рис(унок|\.)|таблица)\s|[図表])"
    r"\s?[\w.‐-]{0,8}\d(\([a-z]\))?\s?[:：]",
    re.IGNORECASE,
)
_REFERS = frozenset(
    """
    in from see by of and to on with than the dans de voir et la le à en y ver siehe der auf nach und aus см. на в и
    """.split()  # noqa: SIM905, a list has a line for each word
)
# What a letter begins with; behind it a sentence may begin in lower case.
_GREETING = re.compile(
    r"\W*(dear|hi|hello|good (morning|afternoon|evening)|liebe[rs]?|hallo|guten (tag|morgen)|ch[eè]re?s?|bonjour|"
    r"madame|monsieur|hola|car[oaie]|buongiorno|geachte|beste|bom dia|olá|hej|kära|(sehr geehrt|estimad|querid|"
    r"gentilissim|egregi|prezad|szanown|drodzy|уважаем|дорог)\w*)\b.{0,80},",
    re.IGNORECASE,
)
# What a sentence ends in.
_ENDS = re.compile(rf"[{STOPS}](?:[^\w\s,]|\s)*$")
#: If at least this share of the sentences begins with the number of a section, they are the text, and stay.
_MOSTLY = 0.5
_ENDED = 0.45  # of the words: laws have long lists between their sentences
#: Share of the sentences that begin with a capital, from which on a text has capitals.
_USUALLY = 0.75
_LOWER = ascii_lowercase.encode()
# A firm by itself.
_FIRM, _MOST_OF_FIRM = re.compile(r"\b(Inc|Ltd|LLC|GmbH|Corp)\.?$"), 40
#: Share of the sentences that mention a licence, from which on the document is one.
_FEW = 0.1
#: Characters of a sentence in which a notice is looked for.
_MOST = 500
_CODE_MARK = re.compile(r"[{}=;$#\\|_*`~]|(?<!\w)\^|\(\)|::|->|</?\w+>")
# What such marks begin with: at least as many, and faster to count.
_CODE_BEGINS = re.compile(r"[{}=;$#\\|_*`~^(:<-]")
# What stands for a licence outside of one, in lower case.
_LICENCE = re.compile(
    r"this licen[cs]e\b|general public licen[cs]e|registered trade-?marks?\b|(is|are) (a )?trade-?marks? of\b|"
    r"marque déposée|marca registrada|eingetragene marke"
)
_LICENCES = _Search(_LICENCE, "licen trade marque marca eingetragen")
# Marks in front of an entry of a list, and those of notes behind a sentence.
_BULLET, _ARROW = re.compile(r"[•●▪◦‣·○*–—o-]\s+(?=\w)"), re.compile(r"[↩↑]\ufe0e?$")
_ARROWS = ("↩", "↑", "\ufe0e")
# A sentence does not begin so, nor end so: where a line or an address was cut.
_CUT = re.compile(r"[,;:.)\]](?![.\w])|[|=]|~(?!\d)")
_CUT_OFF = re.compile(
    r"((?<!/)\b(e\.g|i\.e|cf|vs|and|or|the|available (at|from|in)|(found|accessed) at|(in|see|by) (Fig|Figure|Table|Eq|"
    r"Chapter|Section|Appendix)|[;,] see)|//www|://www\.\w{1,80})\.{1,2}$"
)
_CUTS = _Search(
    _CUT_OFF,
    "e.g. i.e. cf. vs. and. or. the. at. from. in. Fig. Figure. Table. Eq. Chapter. Section. Appendix. see. //www",
)
# An address, a path or a command in front.
_BEGINS_WITH_ADDRESS = re.compile(r"[<(]?(\S{0,80}(://|@[\w-]{1,40}\.\w)|//?\w)")
# Of tables that are drawn, of links to elsewhere, and of what a reader did not know.
_RULES = ("||", "| |", "-----", "↗", "{{", "[?]")
_OPEN, _CLOSED, _BRACKET = re.compile(r"[(\[（]"), re.compile(r"[)\]）]"), re.compile(r"[()\[\]（）]")
# Half brackets that are none: of a smile, and behind the number of an entry.
_SMILE, _ENTRY = re.compile(r"[:;]-?[()]"), re.compile(r"(?:^|(?<=\s))\w{1,3}\)")
# The word that a sentence begins with, behind a number in brackets.
_BEGIN = re.compile(r"(?:\(?\w{1,3}\) |\d{1,3}\. |\.{3} ?|… ?)?([^\W\d_]\S*)")
_NUMBERS = re.compile(r"\d+")
# A name that begins a sentence in lower case, such as "p53" and "t-test".
_NAME = re.compile(r"[^\W\d_]{1,20}[-\d]")
# Words of a label, such as "Changes in Version 1.2", that comes again with other numbers, and how often it does.
_LABEL, _AGAIN = 6, 3
_PLACEHOLDER = re.compile(r"<(?:cit|dig)>")
#: Characters of a line of code for each mark in it, at most.
_CODE_SHARE = 12
_PROMPT = re.compile(r">>> |R?> [\w.]{1,40} ?(\(|<-)|\$ |# \w+ -|[\w.-]{1,40}@[\w.-]{1,40}:|\w{0,20}[=-]?#>? ")
_JOINS_NAMES = frozenset(
    """
    and et und y e van von der den de da del di la le
    """.split()  # noqa: SIM905, a list has a line for each word
)
# Two characters are a word, as are two of the syllables that Ethiopic writes.
_SCRIPT = re.compile(f"[{UNSPACED}\u1200-\u137f]")
_MARKS = "".join(map(chr, range(33, 48))) + ":;?[]“”‘’…"


def lengths_of(outline: Outline) -> "array[int]":
    """Return the words of each sentence as budgets count them: with its speaker, and without citations."""
    return array("q", (count_words(as_extracted(text)) for text in with_speakers(outline)))


def as_extracted(sentence: str) -> str:
    """Return a sentence without marks of citations and notes, and without that of an entry of a list."""
    bare = CITATION.sub("", sentence) if "<cit>" in sentence else sentence
    bare = _ARROW.sub("", bare).rstrip() if bare[-1:] in _ARROWS else bare.rstrip()
    bullet = _BULLET.match(bare)
    return bare[bullet.end() :] if bullet else bare


def fit_for_summary(outline: Outline, scores: np.ndarray) -> np.ndarray:
    """Return scores in which sentences that no summary should hold have -inf.

    These are

    - fragments of fewer than `LEAST_WORDS` words with a letter (a label, a page number, an address, a citation); in a
      dialogue, of fewer than `LEAST_SPOKEN_WORDS` words beside fillers, which are words that make up whole sentences
      again and again, such as "Okay";
    - sentences that repeat an earlier one word by word;
    - references, keywords, acknowledgements, notices (licences, trademarks), captions, pointers to elsewhere, lists of
      names, and lines of code;
    - sentences inside brackets or with half a pair of them, those that begin with an address or a path, and those that
      end in a colon, since what they announce is not there;
    - lines that repeat a heading, as in a table of contents, or another line with other numbers; lines that begin with
      the number of a section and do not end as a clause does, where several do, but not most; mentions of a licence or
      a trademark, and sentences in capitals, where they are few;
    - outside of dialogues, sentences with fewer words than `LEAST_SHARE` of those of the median sentence;
    - where sentences that end as such hold many of the words: those that do not, such as captions, items of lists,
      cells of tables and what stands before a formula, and those behind them that begin in lower case; also others
      that begin in lower case, unless a text has few capitals, or the word is a name: it holds a number or a hyphen,
      or it begins several sentences in lower case and none in upper case;
    - what a site tells its readers, such as notices about cookies, unless most sentences do.

    A rule that most sentences break, three or more, tells what kind of text it is, and does not count; but for that
    of short sentences, and of sections. If a document has no others, the scores stay as they are.
    """
    # Kept as a `cached_property` is: a model of concepts asks, and then the selection does.
    known = vars(outline)
    if "fit" not in known:
        known["fit"] = _fit(outline)
    fitting = np.where(known["fit"], scores, -np.inf)
    return fitting if (fitting > -np.inf).any() else scores


def _fit(outline: Outline) -> np.ndarray:
    """Return which sentences a summary may hold: (sentences,), bool."""
    number = len(outline.sentences)
    back = _in_back_matter(outline)
    headings = {_bare(unit.text) for unit in outline.units if unit.is_heading}
    fillers = _fillers(outline.texts) if outline.speakers else frozenset()
    least = LEAST_SPOKEN_WORDS if outline.speakers else LEAST_WORDS
    hashes = np.empty(number, dtype=np.int64)  # a set of texts would take many times their memory
    fit, ends, licences, shouted, numbered, of_site = np.zeros((6, number), dtype=bool)
    words = np.zeros(number, dtype=np.int64)
    broken = np.zeros(number, dtype=np.int8)  # which of the rules against noise a sentence breaks first; 0 is none
    labels = Counter[str]()
    lower, upper = dict[int, str](), Counter[str]()  # words that begin sentences
    greeted = False
    for place, text in enumerate(map(as_extracted, outline.texts)):
        spelt, lowered = text.casefold(), text[:_MOST].lower()
        words[place] = number_of_words = _words(spelt, fillers)
        fit[place] = number_of_words >= least and (len(text) > _MOST or _bare(text) not in headings)
        broken[place] = _rule_broken(text, lowered)
        hashes[place] = hash(spelt)
        begins_as_entry = _NUMBERED.match(text) is not None
        has_end = _ENDS.search(text[-20:]) is not None
        # The clause of a contract; an entry of a table of contents may ask.
        is_clause = begins_as_entry and not text.endswith("?") and (has_end or text.endswith((";", "；")))
        ends[place] = has_end or is_clause
        begins = None if greeted else _BEGIN.match(text)
        greeted = _GREETING.fullmatch(text) is not None
        if begins and not _NAME.match(begins[1]):
            if begins[1].islower():
                lower[place] = begins[1].rstrip(_MARKS)
            else:
                upper[begins[1].rstrip(_MARKS).lower()] += 1
        numbered[place] = begins_as_entry and not is_clause
        shouted[place] = _is_shouted(text[:_MOST])
        licences[place] = _LICENCES.is_in(lowered)
        of_site[place] = _SITE_BEGINS.match(lowered) is not None or _OF_SITES.is_in(lowered)
        if _is_label(text):
            labels[_NUMBERS.sub("0", text)] += 1
    fit &= ~back
    often = np.bincount(broken)
    fit &= (broken == 0) | _are_most(often, number)[broken]
    if not outline.speakers and words[fit & ends].sum() > _ENDED * words[fit].sum():
        fit &= ends
        # A text may have no capitals at all.
        fewest = _AGAIN if upper.total() >= _USUALLY * (upper.total() + len(lower)) else 1
        again = Counter(lower.values())
        for place, word in {} if _are_most(len(lower), number) else lower.items():
            is_name = word not in upper and again[word] >= fewest
            fit[place] &= is_name and (place == 0 or bool(ends[place - 1]))
    for rare in (licences, shouted):
        if rare.sum() < _FEW * len(rare):
            fit &= ~rare
    if of_site.sum() < _MOSTLY * number:
        fit &= ~of_site
    if _AGAIN <= numbered.sum() < _MOSTLY * number:
        fit &= ~numbered
    if not outline.speakers and fit.any():
        fit &= words >= LEAST_SHARE * np.median(words[fit])
    repeated = sum(count for count in labels.values() if count >= _AGAIN)
    for place, text in enumerate(
        map(as_extracted, outline.texts) if repeated and not _are_most(repeated, number) else ()
    ):
        fit[place] &= not (_is_label(text) and labels[_NUMBERS.sub("0", text)] >= _AGAIN)
    # The first of equal ones stays in front.
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    fit[order[1:][hashes[1:] == hashes[:-1]]] = False
    return fit


def _in_back_matter(outline: Outline) -> np.ndarray:
    """Return whether each sentence stands in back matter, by headings, or around the text of a book: (sentences,)."""
    sections = [_BACK_MATTER.fullmatch(heading) is not None for heading in outline.headings]
    in_back, below, is_over = list[bool](), False, False
    for unit in outline.units:
        edge = _BOOK.search(unit.text)
        if edge:
            is_over = edge[1] == "END"
            in_back = in_back if is_over else [True] * len(in_back)
        if unit.is_heading:
            below = _BACK_MATTER.fullmatch(unit.text) is not None
        else:
            in_back.append(below or is_over or edge is not None or sections[unit.section])
    return np.array(in_back, dtype=bool)


def _bare(line: str) -> str:
    """Return a line without a number in front, in lower case."""
    return line.casefold().lstrip("0123456789. ").rstrip(" .")


def _is_label(text: str) -> bool:
    is_short = len(text) <= _MOST and len(text.split()) <= _LABEL
    return is_short and _NUMBERS.search(text) is not None and _ENDS.search(text) is None


def without_back_matter(summary: str) -> str:
    """Return a summary up to the first heading of back matter, or © with a year, unless it begins so.

    A quarter of SumPubMed's abstracts end in a pointer to supplementary material, keywords or a copyright.
    """
    lines = summary.split("\n")
    ends = (place for place, line in enumerate(lines) if _OWNED.search(line) or _BACK_MATTER.fullmatch(line))
    kept = "\n".join(lines[: next(ends, None)]).rstrip()
    return kept if kept and kept != summary.rstrip() else summary


def _words(sentence: str, fillers: frozenset[str]) -> int:
    """Return the number of words with a letter; of scripts without spaces, two characters are a word."""
    spaced = unspaced = 0
    holds_address = any(mark in sentence for mark in _ADDRESS_MARKS)
    holds_script = not sentence.isascii() and _SCRIPT.search(sentence) is not None
    for word in sentence.split():
        if holds_address and _ADDRESS.search(word):
            continue
        characters = len(_SCRIPT.findall(word)) if holds_script else 0
        unspaced += characters
        if not characters and (word.isalpha() or any(map(str.isalpha, word))):
            spaced += not fillers or word.strip(_MARKS) not in fillers
    return spaced + unspaced // 2


def _fillers(sentences: Iterable[str]) -> frozenset[str]:
    """Return the words that make up whole sentences, twice or more."""
    alone = Counter[str]()
    for sentence in sentences:
        if len(sentence) <= _MOST and (words := {word.strip(_MARKS) for word in sentence.casefold().split()} - {""}):
            # "Mm - hmm" is one, too.
            alone.update(words if len(words) <= 2 else ())
    return frozenset(word for word, count in alone.items() if count > 1)


def _are_most(count: Any, number: int) -> Any:
    """Return whether sentences are most of those of a document, for a count or an array of counts."""
    return (count >= _AGAIN) & (count > _MOSTLY * number)


def _rule_broken(sentence: str, lowered: str) -> int:
    """Return the first rule against noise that a sentence breaks, from 1; 0 for none."""
    return next((number for number, is_noise in enumerate(_NOISES, 1) if is_noise(sentence, lowered)), 0)


def _is_shouted(text: str) -> bool:
    utf8 = text.encode("utf-8", "surrogatepass")
    # A text of which a third is a-z is not in capitals, and bytes are counted faster.
    if 3 * (len(utf8) - len(utf8.translate(None, _LOWER))) >= len(text):
        return False
    return 3 * sum(map(str.isupper, text)) > 2 * sum(map(str.isalpha, text))


def _is_cut_in_brackets(sentence: str) -> bool:
    if not _BRACKET.search(sentence):
        return False
    bare = _SMILE.sub("", sentence)
    texts = (bare, _ENTRY.sub("", bare))
    return all(len(_OPEN.findall(text)) != len(_CLOSED.findall(text)) for text in texts)


def _holds_caption(sentence: str) -> bool:
    if ":" not in sentence and "：" not in sentence:
        return False
    caption = _CAPTION.search(sentence[:_MOST])
    return caption is not None and not _REFERS.intersection(sentence[: caption.start()].casefold().split()[-1:])


def _is_code(sentence: str) -> bool:
    text = _PLACEHOLDER.sub("", sentence)
    return _PROMPT.match(text) is not None or all(
        len(marks.findall(text)) * _CODE_SHARE >= len(text) for marks in (_CODE_BEGINS, _CODE_MARK)
    )


def _names_authors(sentence: str) -> bool:
    """Whether a sentence is a list: each word begins with a capital, but for those that join names."""
    if sentence.count(",") + sentence.count(";") < 2:
        return False
    words = 0
    for word in sentence[:_MOST].split():
        if any(map(str.isalpha, word)):
            if not word.strip(_MARKS)[:1].isupper() and word not in _JOINS_NAMES:
                return False
            words += 1
    return words > LEAST_WORDS


#: What is noise, by a sentence and its beginning in lower case.
_NOISES: tuple[Callable[[str, str], bool], ...] = (
    lambda sentence, lowered: _NOTICES.is_in(lowered),
    lambda sentence, lowered: "supported" in lowered and _SUPPORTED.search(lowered) is not None,
    lambda sentence, lowered: _PRODUCED.match(sentence[:_MOST]) is not None,
    lambda sentence, lowered: sentence.endswith((":", "：")),
    lambda sentence, lowered: _holds_caption(sentence),
    lambda sentence, lowered: _BEGINS_WITH_ADDRESS.match(sentence) is not None,
    lambda sentence, lowered: _BRACKETED.fullmatch(sentence) is not None,
    lambda sentence, lowered: _is_cut_in_brackets(sentence),
    lambda sentence, lowered: _NEXT_NUMBER.search(sentence[-20:]) is not None,
    lambda sentence, lowered: _CUT.match(sentence) is not None,
    lambda sentence, lowered: _CUTS.is_in(sentence[-100:]),
    lambda sentence, lowered: any(rule in sentence for rule in _RULES),
    lambda sentence, lowered: len(sentence) <= _MOST_OF_FIRM and _FIRM.search(sentence) is not None,
    lambda sentence, lowered: _is_code(sentence),
    lambda sentence, lowered: _names_authors(sentence),
)
