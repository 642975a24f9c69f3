"""Where sentences of many languages end, and where they go on behind a stop."""

import pytest

from pyramidions.text.normalization import split_readable, split_sentences

# Of each language, what is one sentence on either side of each "|".
ENDS = [
    ("en", "We refer to Tab. 2 and Eqs. (3) and (4) here."),
    ("en", "In Refs. [5] and [6] the bees are wild. | See Sect. 3.2 of it."),
    ("en", "The dose of approx. 5 mg was given."),
    ("en", "It weighs 5 lbs. and 3 oz. of wax. | By Smith et al. [5] the bees fly."),
    ("en", "In Ch. 7 of Vol. IV, cf. Fig. S3, it is told. | See App. A and Lem. 4. | It grew at max. 37 degrees."),
    ("en", "He is of Ltd. and Mass. today."),
    ("en", "They meet on Mon. and Fri. at noon. | Lt. Bee and Gen. Lee fly to Ft. Worth."),
    ("en", "They saw modern art."),
    ("en", "5 bees fly. | It was made by PCR. | mRNA is next."),
    ("en", "They were found. | (2) It holds. | They rest at 5 p.m. | The bees sleep. | 12 of them go."),
    ("en", "determined by nmr. | for example, 5 mg of dna. | the structure is shown. | 5 ml were added."),
    ("de", "Im 19. Jahrhundert gab es Bienen."),
    ("de", "Der 2. Weltkrieg war lang. | Am 5. und 6. Spieltag spielt der 1. FC Köln."),
    ("de", "Er ist inkl. Wachs 5 kg schwer. | Sie zahlte am 3. Mai ca. 5 Euro."),
    ("de", "Er wurde 18. | Danach kam der 5. | Die Bienen fliegen."),
    ("fr", "M. Dupont et Mme. Curie voient le Dr. Martin. | L'art. 5 le dit, c.-à-d. la loi."),
    ("fr", "En 52 av. J.-C. il régnait. | Le mot fin."),
    ("es", "El Dr. Gómez vio aprox. 5 abejas. | Véase la pág. 12 del vol. 5."),
    ("es", "Ud. tiene miel. | Es así. | 5 abejas vuelan."),
    ("it", "L'art. 5 della legge n. 3 lo dice. | Vedi fig. 3 e pag. 12. | Il Dott. Verdi la vede."),
    ("pt", "Ver fig. 3 e pág. 12 do vol. 5. | O Dr. Gomes viu aprox. 5 abelhas. | O art. 5 da lei n. 3 diz isso."),
    ("nl", "Dhr. Jansen ziet op blz. 12 van dl. 5 bijv. 3 wespen. | Het is zo."),
    ("sv", "Se fig. 3 i bd. 5. | Det är t.ex. 5 bin och bl.a. 3 getingar. | Dr. Berg kom."),
    ("da", "I det 19. århundrede var der bier. | Den 5. maj kom de, jf. fig. 3."),
    ("no", "Den 17. mai er en festdag. | I det 19. århundre var det bier. | Kong Harald 5. har bier."),
    ("is", "Á 19. öld voru býflugur. | Hinn 5. maí komu þær. | Sjá bls. 12."),
    ("fi", "Tammikuun 5. päivänä ne nukkuivat. | Ks. kuva 3. | Ne elivät 19. vuosisadalla."),
    ("et", "See oli 19. sajandil. | Nad tulid 5. mail koju."),
    ("lv", "Tas bija 19. gadsimtā. | Bites atlidoja 2020. gada 5. maijā."),
    ("lt", "Žr. 3 pav. ir 12 psl. knygoje. | Prof. Bitė mato."),
    ("pl", "W 19. wieku było pszczół ok. 5 mln. | Zob. rys. 3 i str. 12 w t. 5. | Dr. Nowak żyje m.in. w lesie."),
    ("cs", "V 19. století bylo včel. | Dne 5. května přiletěly, viz obr. 3. | Karel IV. měl včely."),
    ("sk", "V 19. storočí bolo včiel. | Dňa 5. mája prileteli, viď str. 12."),
    ("hu", "A 19. században sok méh volt. | Lásd a 3. ábrát és az 5. oldalt. | IV. Béla méheket tartott."),
    ("hr", "U 19. stoljeću bilo je pčela. | Dana 5. svibnja došle su, vidi sl. 3 i str. 12."),
    ("sl", "V 19. stoletju je bilo čebel. | Dne 5. maja so prišle."),
    ("sr", "У 19. веку било је пчела. | Дана 5. маја су дошле, види сл. 3."),
    ("mk", "Во 19. век имало пчели. | Види стр. 12."),
    ("tr", "Bu 19. yüzyılda oldu. | II. Mehmet arı besledi. | Bkz. Şek. 3 ve s. 12."),
    ("eu", "Ikus 3. irudia hemen. | Erle asko zeuden 19. mendean."),
    ("ru", "См. рис. 3 и стр. 12 в т. 5. | Г. Иванов и др. видели, т. е. давно, напр. 5 шт. | Это всё."),
    ("uk", "Див. рис. 3 і с. 12. | Т. Г. Шевченко любив мед."),
    ("bg", "Вж. фиг. 3 и стр. 12. | Има пчели."),
    ("el", "Βλ. σχ. 3 και σελ. 12. | Ο κ. Παπαδόπουλος έχει μέλισσες."),
    ("ro", "Vezi fig. 3 și pag. 12. | Dl. Popescu are albine. | Este art. 5 din lege."),
    ("id", "Lihat Gbr. 3 dan hal. 12. | Dr. Budi melihat lebah."),
    ("ca", "Vegeu la fig. 3 i la pàg. 12. | El Sr. Puig té abelles."),
    ("ar", "د. أحمد لديه نحل كثير. | انظر شكل. 3 من الكتاب."),
    ("fa", "دکتر احمدی در ص. ۱۲ نوشت. | پایان است."),
    ("hi", "डॉ. शर्मा पृ. 12 देखें। | वे हैं।"),
    ("vi", "TP. Hồ Chí Minh có ong. | Xem Hình. 3 và tr. 5."),
    ("de", "Das Buch erschien in 3. Auflage. | Die Fa. Müller kam gem. Art. 3 Abs. 2. | Es war 5. | Dann gingen sie."),
    ("es", "La Dra. García y D. Juan vieron aprox. 5 mill. de abejas. | Es el s. XIX."),
    ("pl", "Ks. Jan i św. Piotr żyli w XIX w. w Łodzi. | Ul. Długa 5 i pl. Wolności."),
    ("ru", "В XIX в. жили пчёлы. | Проф. Иванов и акад. Петров, ул. Ленина, д. 5, кв. 3. | Это т. н. пчёлы."),
    ("lv", "Sk. 3. att. un 5. lpp. grāmatā. | Dr. Bērziņš nāca."),
    ("tr", "M.Ö. 5. yüzyılda oldu. | I. Dünya Savaşı uzundu."),
    ("en", "See pp. 12-15, cl. 4 of Sch. 2 and Supp. Fig. 3. | In Eq. (3a) and Cor. 4, e.g., it is so. | Bees fly."),
    ("en", "Patients with p < 0.05 were kept. | The rest (n = 12) were left out. | It is p<k. | Yes (a) is > 3."),
    ("en", "It is (p > 0.05. Or so) so. | Let k < 2n. | The (rest) is ≤ 3. | It rose <cit>. | <EMAIL> is [a <b. C]."),
    ("de", "Die Abgabe wird auf den 161. Euro fällig. | Am 100. Tag kam unser 125. Gast."),
    ("de", "Im XVIII. Band steht es. | Es war die 1945. | Zum 150. Mal fliegen sie. | Es waren 161. | Bienen gehen."),
    ("tr", "Padişah III. Selim geldi. | Türkiye'de II. Dünya Savaşı yılları."),
    ("hu", "A király II. Ulászló volt. | A 161. helyen állt. | Elérte a 161. | Majd ment."),
    ("no", "Han kom på den 161. plass. | Hun ble 12. | Så gikk de."),
    ("en", "They are in Table. 2. | See Figure. 3 of it. | We sat at the table. | 5 bees came."),
    ("fr", "Il a mis les clés sur la table. | 20 minutes plus tard, il est parti. | Voir Table. 2 et Figure. 3 ici."),
    ("fr", "Il a quitté la section. | 20 personnes l'ont suivi. | Un coup en pleine figure. | 3 dents bougent."),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text"), ENDS)
def test_sentences_go_on_behind_abbreviations_and_ordinals(language: str, text: str) -> None:
    written = text.replace(" | ", " ")
    assert split_readable(written, language) == text.split(" | ")
    assert " ".join(split_sentences(written, language)) == " ".join(text.split(" | "))
