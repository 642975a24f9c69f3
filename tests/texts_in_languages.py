"""A short paper in each of several languages: two headed sections of two sentences, and a summary."""

from typing import NamedTuple


class Written(NamedTuple):
    """A paper; the summary shares most words with the last sentence."""

    text: str
    sentences: list[str]
    headings: tuple[str, str]
    summary: str


def _paper(language_joins: str, headings: tuple[str, str], sentences: list[str], summary: str) -> Written:
    first, second = language_joins.join(sentences[:2]), language_joins.join(sentences[2:])
    return Written(f"{headings[0]}\n\n{first}\n\n{headings[1]}\n\n{second}\n", sentences, headings, summary)


PAPERS = {
    "de": _paper(
        " ",
        ("Einleitung", "Ergebnisse"),
        [
            "Viele Bauern nutzen Dünger, z. B. Mist, weil die Ernte sonst gering ist.",
            "Der Boden wurde bisher kaum untersucht.",
            "Die Pflanzen standen ein Jahr lang im Garten.",
            "Mit Dünger stieg die Ernte der Rüben um die Hälfte.",
        ],
        "Die Ernte der Rüben stieg mit Dünger.",
    ),
    "es": _paper(
        " ",
        ("Introducción", "Resultados"),
        [
            "Muchos agricultores usan abono porque la cosecha es pequeña sin él.",
            "El suelo de la región no se había estudiado hasta ahora.",
            "Las plantas crecieron durante un año en el jardín.",
            "Con el abono la cosecha de remolacha aumentó a la mitad más.",
        ],
        "La cosecha de remolacha aumentó con el abono.",
    ),
    "fi": _paper(
        " ",
        ("Johdanto", "Tulokset"),
        [
            "Monet viljelijät käyttävät lannoitetta, koska sato on muuten pieni.",
            "Alueen maaperää ei ole aiemmin tutkittu kovin tarkasti.",
            "Kasvit olivat puutarhassa kokonaisen vuoden ajan.",
            "Lannoitteen kanssa juurikkaiden sato kasvoi puolella.",
        ],
        "Juurikkaiden sato kasvoi lannoitteen kanssa.",
    ),
    "ru": _paper(
        " ",
        ("Введение", "Результаты"),
        [
            "Многие крестьяне используют удобрения, потому что без них урожай мал.",
            "Почва этого района раньше почти не изучалась.",
            "Растения целый год стояли в саду.",
            "С удобрением урожай свёклы вырос наполовину.",
        ],
        "Урожай свёклы вырос с удобрением.",
    ),
    "ar": _paper(
        " ",
        ("المقدمة", "النتائج"),
        [
            "يستخدم كثير من المزارعين السماد لأن المحصول قليل بدونه.",
            "لم تدرس تربة هذه المنطقة من قبل بشكل كاف.",
            "بقيت النباتات سنة كاملة في الحديقة.",
            "زاد محصول البنجر مع السماد بمقدار النصف.",
        ],
        "زاد محصول البنجر مع السماد.",
    ),
    "hi": _paper(
        " ",
        ("परिचय", "परिणाम"),
        [
            "बहुत से किसान खाद का उपयोग करते हैं क्योंकि उसके बिना फसल कम होती है।",
            "इस क्षेत्र की मिट्टी का पहले अध्ययन नहीं हुआ था।",
            "पौधे एक साल तक बगीचे में रहे।",
            "खाद के साथ चुकंदर की फसल आधी बढ़ गई।",
        ],
        "चुकंदर की फसल खाद के साथ बढ़ गई।",
    ),
    "zh": _paper(
        "",
        ("引言", "结果"),
        [
            "许多农民使用肥料，因为没有肥料收成很少。",
            "这个地区的土壤以前几乎没有研究过。",
            "植物在花园里生长了一整年。",
            "使用肥料以后甜菜的收成增加了一半。",
        ],
        "甜菜的收成增加了一半。",
    ),
    "ja": _paper(
        "",
        ("はじめに", "結果"),
        [
            "多くの農家は収穫が少ないため肥料を使っています。",
            "この地域の土はこれまでほとんど調べられていません。",
            "植物は一年間ずっと庭で育てられました。",
            "肥料を使うとビーツの収穫が半分ほど増えました。",
        ],
        "ビーツの収穫が増えました。",
    ),
}
