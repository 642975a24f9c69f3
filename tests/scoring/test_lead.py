from pyramidions.scoring.folder_documents import lead
from pyramidions.text.language import Language

ENGLISH = Language("en")


def test_lead_takes_whole_sentences_that_fit_and_at_least_one():
    text = "one two three. four five six. seven eight."
    assert lead(text, 7, ENGLISH) == "one two three. four five six."
    assert lead(text, 8, ENGLISH) == text
    assert lead(text, 1, ENGLISH) == "one two three."
    assert lead("", 5, ENGLISH) == ""


def test_lead_cuts_and_counts_as_the_language_does():
    # Two characters count as a word.
    assert lead("猫在这里睡觉。狗在那里跑。", 3, Language("zh")) == "猫在这里睡觉。"
