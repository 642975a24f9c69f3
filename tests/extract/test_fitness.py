"""What is fit to stand in a summary."""

import numpy as np
import pytest

from pyramidions.extract import Budget, Lead, SelectionRules
from pyramidions.extract.extraction import extract
from pyramidions.extract.fitness import fit_for_summary, without_back_matter
from pyramidions.text.outline import outline
from pyramidions.text.turns import dialogue_outline

NO = float("-inf")


def fit(text: str) -> list[float]:
    found = outline(text)
    return fit_for_summary(found, np.ones(len(found.sentences))).tolist()


@pytest.mark.parametrize(
    "noise",
    [
        ":",
        "b).",
        "A paper",
        "1 2 3 4 5.",
        "* doe@example.org",
        "図一。",
        "BEES FLY very fast.",
        "See https://example.org/a/long/path https://example.org www.example.org now",
        "[12, 14-16]",
        "<cit> <cit> .",
        "This is an Open Access article distributed under the terms of the Creative Commons Attribution License.",
        "Copyright © 2011 Doe and others; we keep it.",
        "All rights reserved by the press.",
        "(See the next chapter below.)",
        "To make bees fly, type the following:",
        "Click here for file",
        "Additional file 3: Table S1 lists all bees.",
        "Supplementary material is available at the site of the journal.",
        "Jane A. Doe, Max Müller, Li Wei and Ana de Souza",
        "for (i = 0; i < n; i++) { total += f(x[i]); }",
        ">>> print the sum of all bees",
        "$ git clone the whole thing",
        "Copyright c Jane Doe and others of the hive",
        "Redistributions in binary form must reproduce the notice above.",
        "THIS SOFTWARE IS PROVIDED BY THE BEES AS IT IS.",
        "4.1 Bees of the north 4.1.1.",
        ", Zl are the bees of the north.",
        "Many packages have bees (as e.g.",
        "The code of the bees is available at.",
        "The hive hereby grants permission to draw its bees.",
        "We compare them with bees such as and.",
        "The costs of all bees have two parts: 1.",
        "For all of the bees it is just true; see.",
        "The flight of the bees is shown in Figure.",
        "More about bees stands at https://www.hive.",
        "The bee | | wasp | has some wings.",
        "> plot(bees) draws all of them.",
        "Bee and Wasp, Inc.",
        "R> plot(bees, main = 'all')",
        "Some bees fly Figure 5.4: All of them sleep.",
        "/usr/share/bees holds all the bees.",
        "• bees@example.org is their list.",
        "Bees fly (which is known since long.",
        "0, 1] holds all the bees.",
        "The bees wish to thank the wasps.",
        "This work was supported in part by NIH grant 12.",
        "See also: bees, wasps and the ants.",
        "More on the page of bees ↗.",
        "They count the bees as in [?] today.",
        "Produced by Jane Doe.",
        "bee_north.txt, bee_south.txt, etc.",
        "Diese Website verwendet Cookies.",
        "Wenn du weiterliest, stimmst du der Verwendung von Cookies zu.",
        "This site uses cookies to count you.",
        "Nous utilisons des cookies pour vous compter.",
        "Utilizamos cookies para contarle.",
        "Este site usa cookies para contar.",
        "Questo sito utilizza cookie per contare.",
        "Używamy informacji zapisanych za pomocą cookies.",
        "Мы используем файлы cookie для счёта.",
        "Please enable JavaScript to see the bees.",
        "Aktivieren Sie JavaScript, um die Bienen zu sehen.",
        "Your email address will not be published.",
        "Deine E-Mail-Adresse wird nicht veröffentlicht.",
        "Votre adresse e-mail ne sera pas publiée.",
        "Il tuo indirizzo email non sarà pubblicato.",
        "Twój adres e-mail nie zostanie opublikowany.",
        "Je e-mailadres wordt niet gepubliceerd.",
        "Denna webbplats använder cookies för att räkna.",
        "Wir verwenden auf unserer Website Cookies und anderes.",
        "By going on you agree to the use of cookies.",
        "Abonnieren Sie jetzt den großen Newsletter!",
        "Subscribe to our weekly newsletter.",
        "Lesen Sie hier mehr davon.",
        "This page has affiliate links to the shops.",
        "Lea también otros textos.",
        "Bildrechte: Jane Doe und andere",
        "Alle Rechte vorbehalten von uns.",
        "Tous droits réservés aux abeilles.",
        "Here stands {{bee.name}} of the hive.",
        "This e-mail and its bees are confidential.",
        "If you are not the intended recipient, delete it.",
        "For more on the bees, see their page.",
        "Please refer to our list of bees.",
        "See also the law of 1848.",
        "For more information about bees, talk to your doctor or a nurse.",
        "See page 59 for more bees.",
        "Weitere Informationen finden Sie im Anhang.",
        "Diese Nachricht ist nur für Sie und vertraulich.",
    ],
)
def test_noise_is_not_fit(noise: str) -> None:
    assert fit(f"Bees fly very fast.\n\n{noise}\n\nThey sting us.") == [1, NO, 1]


@pytest.mark.parametrize(
    "sentence",
    [
        "The licence of bees is that of flowers.",
        "We show in table 2 that bees (n = 12) fly at p < 0.05 [3].",
        "Bees, Wasps and Ants are insects of summer.",
        "蜂はとても速く飛ぶ。",
        "Wir sahen Bienen, Wespen, Hummeln.",
        "We made additional files of bees and used them in all trials.",
        "Bees live in (0, 1] and in [0, 1), as we all have said :)",
        "a) Bees fly from north to south.",
        "Recall@10 of bees is that of wasps.",
        "They flew 2.5 miles in version 4.1.2 of the hive.",
        "1.5 million bees fled the hive.",
        "The mean of all bees was 45.3.",
        "We ask whether a) bees fly and b) wasps sting.",
        "The gains are clear from Table 3: bees fly faster.",
        "In Table 1 Smith et al. count all bees.",
        "p53 is mutated in some of the bees.",
        "For the bees, seeing is all.",
        "A bee overhears a dance of which it is not the intended recipient.",
        "This message sets out the confidentiality of bees.",
        "See how all of the bees fly.",
        "Produced by the bees, honey is sweet.",
        "Irony is the trademark of his prose.",
        "Most hives are supported by state grants.",
        "~50 bees attended the dance.",
        "本文提出一种基于CNN的方法。",
        "በፀደይ ይነሳሉ።",
        "Cookies hold the number of a reader.",
        "An e-mail of the bees was published.",
        "Milk and cookies are for bees.",
        "The bees publish a newsletter of their own.",
        "Lee also said that the company would hire nine thousand people.",
        "Lies also spread faster than the truth does.",
        "JavaScript is the language of interactive pages.",
        "JavaScript made the pages of the bees active and settled.",
        "The leaked emails were not meant for the public.",
        "The newsletter has two million subscribers.",
        "Their newsletter, which few subscribe to, is of use.",
        "Girl Scouts sold cookies at this corner for all of us.",
        "Wir backen Cookies, und jede Seite verwendet Zucker.",
        "The court said that the site must tell of cookies and of what we use.",
        "Read also had a say in the case of the bees.",
        "An affiliate link led the police to the thief of bees.",
        "We use butter in our cookies, as all of us do.",
        "The court limited the use of cookies by shops.",
        "When JavaScript is disabled, bees load slowly.",
        "Lee también dijo que las abejas vuelan.",
        "Read more books, says the teacher of the bees.",
        "Nobody knows where the money was obtained from.",
        "It was never an either/or.",
    ],
)
def test_what_looks_like_noise_is_fit(sentence: str) -> None:
    assert fit(f"Bees fly very fast.\n\n{sentence}\n\nThey sting us.") == [1, 1, 1]


@pytest.mark.parametrize(
    "form",
    [
        "({}.)",
        "{}, he says:",
        "{} (which is.",
        "/usr/bin {}.",
        "x ~ y | {}.",
        "Click here for {}.",
        ", {}.",
        "and so {}.",
    ],
)
def test_what_most_sentences_break_is_no_rule(form: str) -> None:
    others = [f"The {each} hive flies very fast." for each in "ab"]
    said = [form.format(f"Bees of the {each} fly very fast") for each in ("north", "south", "east", "west", "sea")]
    assert fit("\n\n".join([*others, *said])) == [1] * 7
    assert fit("\n\n".join([*others, "The end is near.", said[0]]))[-1] == NO


WHOLE = "Bees fly very fast.\n\nThey sting us (all).\n\nDo they like “it?”\n\nNobody knows this!"
ZOOS = "zoo is a good package.\n\nzoo makes series.\n\nzoo plots them."
SECTIONS = "# 1 On bees\n\nThey have wings.\n\n# 2. Of bees and wasps\n\nThey have four wings."
FEW = " ".join(f"Bee {letter} flies very fast." for letter in "abcdefghij")
CELLS = [f"Bees of hive {letter}" for letter in "abcdefghij"]
ASKED = "1.5 Why do bees fly?\n\n1.6 Do bees fly at all?\n\n2.1 Why are bees here?"
SAID = "They sting us. Wasps sting us, too. Nobody knows why."
CLAUSES = '1.1 The seller delivers ten hives;\n\n1.2 The buyer pays for each hive.\n\n2.1 "He warrants them."'
LOUD = "BEES OF THE NORTH AND OF THE SOUTH ..."
QUIET = [f"Bees fly {word} than wasps." for word in "faster higher slower further longer later wider lower".split()]
LONG = [f"Bees fly {word} than all of the wasps do, as everybody knows who looked at them." for word in "abc"]


def log(*versions: str) -> str:
    items = zip(versions, ("old", "new", "big"), strict=True)
    return "Bees are new.\n\n" + "\n\n".join(f"Changes in version {v}\n\n* one more bee, {kind}" for v, kind in items)


def paragraphs(*texts: str) -> str:
    return "\n\n".join(texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Where sentences end, what does not end is a fragment, and what goes on behind it is one, too.
        (paragraphs(WHOLE, "Bees of the north and south"), [1] * 4 + [NO]),
        (paragraphs(WHOLE, "which holds for all the bees;"), [1] * 4 + [NO]),
        (paragraphs(WHOLE, "The mean of bees is"), [1] * 4 + [NO]),
        (paragraphs(WHOLE, "The mean of all is", "where bees are few."), [1] * 4 + [NO] * 2),
        # Sentences with most of the words tell how sentences end, whatever the number of the others.
        (paragraphs(FEW, *CELLS), [1] * 10 + [NO] * 10),
        (paragraphs(*QUIET[:3], "Bees of the north", "Bees of the south", "Bees of it"), [1] * 3 + [NO] * 3),
        (paragraphs("Bees fly very fast.", "Bees of the north", "Wasps of it"), [1] * 3),
        # Laws have more words in lists, and before them.
        (paragraphs("Bees fly very fast and sting us.", "The office may order by decree", "1. the form,"), [1, NO, NO]),
        # A name may begin in lower case, as often as names do. A word that also begins a sentence is no name.
        (paragraphs(WHOLE, "zoo is a good package."), [1] * 4 + [NO]),
        (paragraphs(WHOLE, ZOOS, "...bees are not."), [1] * 7 + [NO]),
        (paragraphs(WHOLE, "nobody and no bee.", "(2) they sting and fly."), [1] * 4 + [NO] * 2),
        (paragraphs(WHOLE, "3. stings a bee in May."), [1] * 4 + [NO]),
        # Nor is it where a letter begins.
        (paragraphs("Dear all,", "bees are few.", WHOLE), [NO] + [1] * 5),
        (paragraphs("Liebe Bienen,", "bees are few.", WHOLE), [NO] + [1] * 5),
        (paragraphs("High bees of the town,", "bees are few.", WHOLE), [NO, NO] + [1] * 4),
        # A corpus may have no capitals.
        (paragraphs(WHOLE.lower(), "bees are few."), [1] * 5),
        # Lists of changes hold no other lines.
        ("* add a new bee\n* fix the old bee\n\nBees fly very fast.", [1, 1, 1]),
        # A line that repeats a heading.
        (paragraphs("Bees fly very fast.", "of bees and wasps.", SECTIONS), [1, NO, 1, 1]),
        # A label that comes again with other numbers.
        (log("1.1", "1.2", "1.3"), [1] + [NO, 1] * 3),
        (log("1.1", "1.2", "1.3").replace("Changes", "• Changes"), [1] + [NO, 1] * 3),
        (log("1.1", "1.2", "now"), [1] * 7),
        # A licence is mentioned in no extract unless the document is one.
        (f"{FEW} You may copy it under this licence.", [1] * 10 + [NO]),
        (f"{FEW} Hive is a registered trademark of Bees.", [1] * 10 + [NO]),
        ("You may copy bees under this licence. Bees fly very fast.", [1, 1]),
        # Where a document is made of what sites say, it says so.
        ("This site uses cookies. We use cookies to count you. Bees fly very fast.", [1, 1, 1]),
        # The number of a section begins no sentence where several do, but not most. Clauses end as such.
        (paragraphs("Bees fly very fast.", "1.5 Why do bees fly at all?", "They sting us."), [1, 1, 1]),
        (paragraphs("Bees fly very fast.", ASKED, SAID), [1, NO, NO, NO, 1, 1, 1]),
        (paragraphs("Bees fly very fast.", ASKED, "They sting us."), [1] * 5),
        (f"This is made between the club and the buyer. It ends on the last day of May.\n\n{CLAUSES}", [1] * 5),
        # Capitals are fit only in a document that is written so.
        (paragraphs(*QUIET, "They sting us.", "Nobody knows why.", LOUD), [1] * 10 + [NO]),
        (paragraphs(LOUD, "THEY STING US."), [1, 1]),
        # Of a script without capitals, the letters of an acronym are none.
        (paragraphs(*(f"蜂は{n}とても速く飛ぶ。" for n in range(10)), "本文提出一种基于CNN的方法。"), [1] * 11),
        # A sentence of far fewer words than others; marks of citations are no words.
        (paragraphs(*LONG, "So do most ants.", "So do ants."), [1, 1, 1, 1, NO]),
        (paragraphs(*LONG, "So do ants <cit> <cit> <cit> <cit> ."), [1, 1, 1, NO]),
        # Where nothing is fit, all may stand.
        ("Yes. No. Yes.", [1, 1, 1]),
        ("", []),
    ],
)  # fmt: skip
def test_what_is_fit_depends_on_the_other_sentences(text: str, expected: list[float]) -> None:
    assert fit(text) == expected


def test_a_dialogue_has_no_backchannels() -> None:
    text = """Ann: We start with the plan of the new bee house today.
Bob: Okay.
Ann: Okay. Okay, okay, okay, okay, okay, okay, okay, we go on, right.
Bob: Mm - hmm.
Ann: Mm - hmm.
Bob: Right.
Ann: Right. Right.
Bob: The bee house costs too much for this year, I think."""
    found = dialogue_outline(text)
    assert found is not None
    scores = fit_for_summary(found, np.ones(len(found.sentences)))
    assert np.flatnonzero(scores > NO).tolist() == [0, len(scores) - 1]


def test_what_stands_around_the_text_of_a_book_is_not_fit() -> None:
    edges = [f"*** {side} OF THE PROJECT GUTENBERG EBOOK, BEES AND WASPS ***" for side in ("START", "END")]
    text = paragraphs("You may copy this book.", edges[0], "Bees fly very fast.", edges[1], "You owe us no money.")
    assert fit(text) == [NO, 1, NO]


@pytest.mark.parametrize("heading", ["References", "7. REFERENCES", "Acknowledgment", "Keywords", "参考文献"])
def test_back_matter_is_not_fit(heading: str) -> None:
    text = f"# Results\n\nBees fly very fast.\n\n# {heading}\n\nDoe wrote about bees in 2001."
    assert fit(text) == [1, NO]
    assert fit(text.replace(heading, f"{heading} in poems")) == [1, 1]
    # Below a heading of a lower level, it ends at the next one.
    text = text.replace(f"# {heading}", f"## {heading}")
    assert fit(f"{text}\n\n## Wings\n\nThey have four wings.\n\n# Ends\n\nThat is all there is.") == [1, NO, 1, 1]


@pytest.mark.parametrize(
    "end", ["Keywords\n\nbees wings", "electronic supplementary material\nonline.", "© the authors 2015", "Doe © 2015"]
)
def test_a_summary_ends_where_its_back_matter_begins(end: str) -> None:
    assert without_back_matter(f"Bees fly.\n\nThey sting.\n\n{end}\nmore") == "Bees fly.\n\nThey sting."


@pytest.mark.parametrize(
    "summary",
    ["Bees fly. \n", "Bees fly.\nBeeCorp© wants to fly.", "Keywords help bees.\nThey fly.", "© 2015\nBees fly.", ""],
)
def test_a_summary_without_back_matter_stays(summary: str) -> None:
    assert without_back_matter(summary) == summary


def test_a_score_of_minus_infinity_stays() -> None:
    found = outline("Bees fly very fast. They sting us. Yes.")
    assert fit_for_summary(found, np.array([NO, 2.0, 3.0])).tolist() == [NO, 2.0, NO]
    assert fit_for_summary(found, np.array([NO, NO, 3.0])).tolist() == [NO, NO, 3.0]


def test_the_lead_has_no_gaps() -> None:
    found = outline("Bees fly very fast. They sting when they are much afraid of us. We run away.")
    scores = Lead().rank(found)
    rules = SelectionRules(Budget(words=8), stops=Lead.stops)
    assert extract(found, scores, rules).text == "Bees fly very fast."
    assert extract(found, scores, rules._replace(stops=False)).text == "Bees fly very fast. We run away."
