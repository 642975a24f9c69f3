"""Headings and sentences of a text."""

import pickle
import tracemalloc
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.text.normalization import normalize
from pyramidions.text.outline import Outline, Unit, Units, outline


def headings(text: str) -> list[str]:
    return [unit.text for unit in outline(text).units if unit.is_heading]


NOTICE = "IN NO EVENT SHALL BEES\nBE LIABLE FOR HONEY, WAX\nOR OTHER THINGS OF BEES."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One\n===\nText.\n\nTwo\n===\nMore.", ["One", "Two"]),
        ("Of bees\n~~~~~~~\n\nThey fly.\n\nWasps\n~~~~~\n\nThey sting.", ["Of bees", "Wasps"]),
        ("# One\n```\n# a comment\n```\nText.\n# Two\nText.", ["One", "Two"]),
        ("# One\n\nRun:\n~~~~\n# not\n~~~~\n\n# Two\n\nEnd.", ["One", "Two"]),
        ("1 Introduction\nText.\n\n1.1 Motivation\nText.", ["1 Introduction", "1.1 Motivation"]),
        # A short line between an empty one and text is one, but the last line of a paragraph is none.
        ("RESULTS\n\nyield of bees\nthe yield was high in all samples.\n\nMETHODS\nwe measured.",
         ["RESULTS", "yield of bees", "METHODS"]),
        ("this line of text is broken by its width and goes on in\nthe next one\n\nAnother text.", []),
        # A number may begin a wrapped line.
        ("Text.\n\n15 patients were randomly assigned to receive either the treatment or\na placebo in May.", []),
        ("Text.\n\n15 patients\nreceived a placebo.", []),
        ("Text.\n\n2.1 how the samples were taken\nthe samples were taken in may.", ["2.1 how the samples were taken"]),
        ("These were not the only\nresults\nthat we found.", []),
        ("It works.\n\nIt is very fast indeed, too.", []),
        # A line of spaces is empty.
        (f"Intro.\n\nBees of Rome\n{' ' * 99}\nThey fly.", []),
        # Speech, items and notices in capitals.
        ('Title\n\nIt began.\n\n"THEIRS--"\nhe said to all of them again.\n\nI WILL--\nThen it was over for good.',
         ["Title"]),
        ("Title\n\nIt began.\n\n* CLEAR\nforgets all of the bees at once.", ["Title"]),
        (f"Title\n\nIt began.\n\n{NOTICE}", ["Title"]),
        # A numbered title with a full stop, where it stands alone.
        ("A law of bees.\n\n  1. Rights of Bees.\n\nThey have rights.", ["1. Rights of Bees."]),
        ("A law of bees.\n\n  1. The rights of bees.\n\nThey have rights.", []),
        ("A law of bees.\n\n  Rights of Bees.\n\nThey have rights.", []),
    ],
)  # fmt: skip
def test_headings_are_told_from_other_lines(text: str, expected: list[str]) -> None:
    assert headings(text) == expected


@pytest.mark.parametrize(
    "parts",
    [
        ("一、引言", "十二、结论"), ("（一）研究背景", "（二）研究方法"),
        ("1、引言部分", "2、方法部分"), ("1.引言部分", "2.1方法部分"),
        ("第一章", "第十二章 方法"), ("第3节 总则", "第4节 附则"),
        ("第一条", "第二条 附则"), ("第1編 総則", "第2編 各則"),
        ("제1장 총칙", "제2장 방법"), ("제 1 절 목적", "제 2 절 방법"), ("가. 서론", "나. 본론"),
        ("Глава 1", "Глава 2. Методы"), ("Часть I", "Часть II. Методы"), ("Статья 1", "Статья 2. Права"),
        ("Chapter 1", "CHAPTER TWO"), ("Part I", "Part II: The wasps"), ("Article 1.", "Article 2 Duties"),
        ("§ 1", "§ 2 Pflichten"), ("Art. 1 Zweck", "Art. 2 Pflichten"), ("Kapitel 1: Bienen", "Kapitel 2: Wespen"),
        ("Chapitre 1", "Chapitre II – Méthodes"), ("Capítulo 1", "Capítulo 2. Métodos"), ("Artículo 1", "Artículo 2"),
        ("Rozdział 1", "Rozdział 2. Metody"), ("Bölüm 1", "Bölüm 2: Yöntem"), ("Κεφάλαιο 1", "Κεφάλαιο 2. Μέθοδοι"),
        ("المادة 1", "المادة 2"), ("अध्याय 1", "अध्याय 2"), ("Section 1 – Bees", "Section 2 – Wasps"),
    ],
    ids=" | ".join,
)  # fmt: skip
def test_parts_of_books_laws_and_reports_begin_sections(parts: tuple[str, str]) -> None:
    text = "Of bees and of wasps\n\n{}\n\nBees fly. They rest.\n\n{}\n\nWasps sting."
    assert outline(text.format(*parts)).headings == ("", *parts)
    assert outline(text.format(*parts).replace("\n\n", "\n")).headings[-1:] == parts[1:]


@pytest.mark.parametrize(
    "line",
    [
        "Section 3 of the paper", "Article 1 is void", "1、苹果\n2、香蕉\n3、梨", "第一条 本法保护蜜蜂。",
        "12月5日蜜蜂飞", "Part of it", "一方面", "3.5米", "Chapter 1 says that bees fly.",
    ],
)  # fmt: skip
def test_a_mention_of_a_part_and_a_list_are_no_headings(line: str) -> None:
    assert not outline(f"Bees fly.\n\n{line}\n\nThey rest.").has_sections


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# One\nno full stop\n\nanother paragraph\n# Two\nend", ["no full stop", "another paragraph", "end"]),
        ("The line\nends here. And\nhere.", ["The line ends here.", "And here."]),
        ("A summa-\nrizer of docu-\n ments.", ["A summarizer of documents."]),
        ("Bees are ex-\ntremely self-orga-\nnized, and state-of-the-\nart flyers.",
         ["Bees are extremely self-organized, and state-of-the-art flyers."]),
        ("The EU-\nwide rule, the Max-\nPlanck bees of a 20-\nyear-old, COVID-\n19, self-\nmade and well-\nknown.",
         ["The EU-wide rule, the Max-Planck bees of a 20-year-old, COVID-19, self-made and well-known."]),
        ("The self-\nish high-\nlight: co-\noperation of bee-\nkeepers, and pre-\nand post-\nCOVID bees.",
         ["The selfish highlight: cooperation of beekeepers, and pre- and post-COVID bees."]),
        ("Die Honig-\nund Wachsernte der Nord-\nSüd-Achse der Grö-\nße über-\nwintert; пче-\nлы.",
         ["Die Honig- und Wachsernte der Nord-Süd-Achse der Größe überwintert; пчелы."]),
        ("- The bee has no stop\nThis line stands behind it, at a pH\n> 7.\n- The wasp\nhas\n  Many lines\n- end",
         ["- The bee has no stop", "This line stands behind it, at a pH > 7.", "- The wasp has Many lines", "- end"]),
        # The column may be narrow.
        ("- Mail to the office of\nSpringfield by the sea", ["- Mail to the office of Springfield by the sea"]),
        # Of a mail: headers, and what it quotes.
        ("From: Ann <a@b.org>\nTo: Bob\n <b@b.org>\nX: b\nSubject: Bees\n\n"
         "Hi Bob,\n> Do they\n> fly?\n>> No.\nYes.\n--\nAnn\nBees\n\nPS: Bye.",
         ["Hi Bob,", "Do they fly?", "No.", "Yes.", "PS: Bye."]),
        ("Bees.\n\n-----Original Message-----\nVon: Ann\nBetreff: Bienen\nSie fliegen.\n\nFrom: Ann\nBees.\n> f(x)",
         ["Bees.", "-----Original Message-----", "Sie fliegen.", "From: Ann Bees.", "> f(x)"]),
        ("Sehr geehrte Frau Doe,\n\nsie fliegen.\n\nMit freundlichen Grüßen\nAnn\nHauptstr. 1\n\nAnlage: eine.",
         ["Sehr geehrte Frau Doe,", "sie fliegen.", "Anlage: eine."]),
        ("They fly.\n\nBest regards,\n\n\nAnn Doe\nHead of Bees.\n\nOurs sting.", ["They fly.", "Ours sting."]),
        # Long lines, a postscript and what stands within a sentence are no names.
        ("It said:\nYours faithfully,\nANN DOE.\nShe put the letter of all bees down, and left the room.\nHe too.",
         ["It said:", "She put the letter of all bees down, and left the room.", "He too."]),
        ("They fly.\n\nKind regards\n\nPS: They sting.", ["They fly.", "PS: They sting."]),
        ("The queen sends\nkind regards\nto us.", ["The queen sends kind regards to us."]),
        ("We show\n- pooling\n1. decoding\n", ["We show", "- pooling", "1. decoding"]),
        ("News.\n\n  o Bees fly\n    fast\n  o Wasps do", ["News.", "o Bees fly fast", "o Wasps do"]),
        ("これは犬です。「猫だ。」と言った。本当に?\n次の行。",
         ["これは犬です。", "「猫だ。」と言った。", "本当に?", "次の行。"]),
        ("他说：“蜂飞了。它们很忙。”然后走了。\"好！走。\"他说。完了。",
         ["他说：“蜂飞了。它们很忙。”然后走了。", '"好！走。"他说。', "完了。"]),
        ("ឃ្មុំដេកនៅរដូវរងា។ ពួកវាភ្ញាក់៕មេឃ្មុំហើរ។", ["ឃ្មុំដេកនៅរដូវរងា។", "ពួកវាភ្ញាក់៕", "មេឃ្មុំហើរ។"]),
        ("སྦྲང་མ་ཉལ་གྱི་རེད། །ཟླ་བ་ལང་གི་རེད། རྒྱལ་མོ་འཕུར།",
         ["སྦྲང་མ་ཉལ་གྱི་རེད། །", "ཟླ་བ་ལང་གི་རེད།", "རྒྱལ་མོ་འཕུར།"]),
        ("ንቦች በክረምት ይተኛሉ። በፀደይ ይነሳሉ።", ["ንቦች በክረምት ይተኛሉ።", "በፀደይ ይነሳሉ።"]),
        ("春の\n花。\n　次の段落", ["春の花。", "次の段落"]),
        # Long lines of scripts without spaces end within words; short ones stand for themselves.
        ("ผึ้งเป็นแมลงที่อาศัยอยู่รวมกันเป็นฝูงใหญ่และทำงานหนักตลอดทั้งวันเพื่อเก็บน้ำ \r\n  หวานจากดอกไม้",
         ["ผึ้งเป็นแมลงที่อาศัยอยู่รวมกันเป็นฝูงใหญ่และทำงานหนักตลอดทั้งวันเพื่อเก็บน้ำหวานจากดอกไม้"]),
        ("ເຜິ້ງເປັນແມງໄມ້ທີ່ອາໄສຢູ່ຮ່ວມກັນເປັນຝູງໃຫຍ່ແລະເຮັດວຽກໜັກຕະຫຼອດມື້ເພື່ອເກັບ\nນ້ຳຫວານ",
         ["ເຜິ້ງເປັນແມງໄມ້ທີ່ອາໄສຢູ່ຮ່ວມກັນເປັນຝູງໃຫຍ່ແລະເຮັດວຽກໜັກຕະຫຼອດມື້ເພື່ອເກັບນ້ຳຫວານ"]),
        ("ผึ้งบินไกล\nมันทำน้ำผึ้ง", ["ผึ้งบินไกล มันทำน้ำผึ้ง"]),
        ("꿀벌은 큰 무리를 지어\n함께 산다. 그들은 춤으로\n말한다.",
         ["꿀벌은 큰 무리를 지어 함께 산다.", "그들은 춤으로 말한다."]),
        # So do lines of chats in small letters, but not broken ones.
        ("hi all\nhow are you today\nfine, and you\ni saw the bees\nreally\nyes, and\nwasps",
         ["hi all", "how are you today", "fine, and you", "i saw the bees", "really", "yes, and", "wasps"]),
        ("привет всем\nкак у вас дела сегодня\nхорошо\nя видел пчёл",
         ["привет всем", "как у вас дела сегодня", "хорошо", "я видел пчёл"]),
        ("the bees of the garden fly far\nin spring and they come back at\nnight when it is dark outside\nof the hive.",
         ["the bees of the garden fly far in spring and they come back at night when it is dark outside of the hive."]),
        ("The bees fly\nwhen it is warm\nbecause they like.", ["The bees fly when it is warm because they like."]),
        (" \n ", []),
    ],
)  # fmt: skip
def test_sentences_are_joined_over_lines_and_end_with_paragraphs_and_items(text: str, sentences: list[str]) -> None:
    assert list(outline(text).texts) == sentences


def test_headings_of_the_highest_level_begin_sections_and_the_title_begins_none():
    found = outline("# A title\n\nBefore. All.\n\n## One\nText one.\n\n### Deeper\nMore.\n\n## Two\nText two.")
    assert found.headings == ("", "One", "Two")
    assert found.sections == [["Before.", "All."], ["Text one.", "More."], ["Text two."]]
    assert [unit.text for unit in found.units if unit.is_heading] == ["A title", "One", "Deeper", "Two"]
    assert outline("# One\n# Two\n# Three\nText.").sections == [[], [], ["Text."]]
    assert outline("One. Two.").headings == ("",) and not outline("One. Two.").has_sections
    assert outline("").headings == () and outline("").units == ()
    # In markdown nothing else is a heading.
    text = "# Methods\n\nBees fly.\n\ndiscussion\n\nThey sting.\n\n# Results\n\nRESULTS OF 2001\n\nThey rest."
    assert outline(text).headings == ("Methods", "Results")
    assert "discussion" in outline(text.replace("# Results", "Results")).headings
    found = outline("BACKGROUND\nwe begin. we go on.\n\nmethods\nwe do it.\nRESULTS\nit works.")
    assert found.headings == ("BACKGROUND", "methods", "RESULTS") and found.sections[0] == ["we begin.", "we go on."]
    numbered = "1 Introduction\nText.\n\n1.1 Motivation\nText.\n\n2. Methods\nText."
    assert outline(numbered).headings == ("1 Introduction", "2. Methods")


def test_a_first_line_that_the_width_of_the_page_breaks_is_no_heading():
    # German nouns are in capitals, so the next line may be, too.
    text = (
        "Die Band blieb zusammen.\n\n"
        "Einen Tag später dementierte Brian Johnson gegenüber dem Daily\n"
        "Telegraph die Auflösung der Band und ihre Absicht, sich zu trennen.\n\n"
        "Was die Mitglieder der Gruppe heute sagen und was Hörer\n"
        "Tag für Tag und Jahr für Jahr von ihnen hören wollen, steht in vielen Zeitungen der Stadt.\n"
    )
    assert headings(text) == ["Was die Mitglieder der Gruppe heute sagen und was Hörer"]


def test_a_table_of_contents_is_left_out_up_to_where_its_first_entry_comes_again() -> None:
    contents = "Table of Contents\n\n1. Bees ..... 2\n1.1. Wings\n\n2. Wasps 9\n\n"
    body = "Chapter 1. Bees\n\nBees fly fast.\n\n2. Wasps\n\nWasps sting."
    assert outline(f"On insects.\n\n{contents}{body}").units == outline(f"On insects.\n\n{body}").units
    assert "1.1. Wings" not in " ".join(unit.text for unit in outline(f"{contents}{body}").units)
    # One whose entries do not come again may be anything.
    assert "2. Wasps 9" in headings(f"{contents}Bees fly fast.")
    # A rule is no entry, and another number is another title.
    for text in ("Contents\n--------\n\nBees fly.\n\nUse\n--------\n\nThey sting.", "Index\nPage 1\nBees fly.\nPage 2"):
        assert "Bees fly." in " ".join(outline(text).texts)


def test_a_date_that_begins_a_broken_line_is_no_item():
    broken = "Der Rat der Stadt und alle ihre Gemeinden trafen sich am"
    for date in ("3. Oktober 2023.", "1. Oktober 2023."):
        (sentence,) = outline(f"{broken}\n{date}", language="de").sentences
        assert sentence.text == f"{broken} {date}"
    # Numbers that count go on, also behind entries without a full stop.
    items = f"We show:\n1. {broken}\n2. {broken}\n3. more"
    assert [unit.text[:2] for unit in outline(items).sentences] == ["We", "1.", "2.", "3."]


def is_sound(found: Outline) -> None:
    assert all(unit.text and normalize(unit.text) == unit.text for unit in found.units)
    assert all(0 <= unit.section < len(found.headings) for unit in found.units)
    assert [unit.section for unit in found.units] == sorted(unit.section for unit in found.units)


@given(st.text(alphabet="ab. \n#-=1A", max_size=80))
def test_units_are_normalised_in_order_and_never_empty(text):
    is_sound(outline(text))


def test_lines_in_any_order_have_an_outline():
    lines = ["", " " * 40, "Bees of Rome", "1. Bees", "- a bee", "A bee flies fast. " * 4]
    for text in map("\n".join, product(lines, repeat=4)):
        is_sound(outline(text))


def test_an_outline_takes_little_more_memory_than_its_text() -> None:
    text = "".join(f"Methods {number}\n\nIt is known. A value of {number} was found.\n" for number in range(3_000))
    lines = text.splitlines()
    tracemalloc.start()
    found = outline(lambda: lines)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.units) == 9_000 and list(found.texts)[-1] == "A value of 2999 was found."
    # 21 bytes a unit beside the text, where two objects took 130.
    assert held < 2 * len(text) and peak < 2.5 * len(text)


def test_units_are_those_that_were_given() -> None:
    given = (Unit("A", 0, True), Unit("b ü \U0001f600", 0), Unit("\ud800", 1))
    found = Outline(Units(given), ("A", ""))
    assert found.units == given and found.units[-2:] == given[-2:] and found.sentences == given[1:]
    assert found.texts[1] == "\ud800" and found.texts[:1] == ["b ü \U0001f600"]
    assert found == pickle.loads(pickle.dumps(found))  # noqa: S301


def test_a_quotation_that_is_never_closed_does_not_swallow_the_rest() -> None:
    rain = "Then it rains. "
    found = outline(f'He says "we go home. {rain * 200}').texts
    assert list(found) == ['He says "we go home.', *[rain.strip()] * 200]
    short = f'He says "we go home. {rain * 20}" The end.'
    assert list(outline(short).texts) == [short[:-9], "The end."]
    assert list(outline(f"“没关。{'很长。' * 200}").texts)[-50:] == ["很长。"] * 50


def test_a_text_without_full_stops_is_cut_every_200_characters() -> None:
    spoken = "so today we talk about bees " * 100
    found = outline(spoken).texts
    assert " ".join(found) == spoken.strip() and {150 < len(part) <= 200 for part in found[:-1]} == {True}
    clauses = "the goods of the lot; " * 150
    assert list(outline(clauses).texts) == ["the goods of the lot;"] * 150
    unspaced = "今日は晴れです" * 400
    assert "".join(outline(unspaced).texts) == unspaced and len(outline(unspaced).texts) == 14
