from pyramidions.scoring.folder_documents import lead


def test_lead_takes_whole_sentences_that_fit_and_at_least_one():
    text = "one two three. four five six. seven eight."
    assert lead(text, 7) == "one two three. four five six."
    assert lead(text, 8) == text
    assert lead(text, 1) == "one two three."
    assert lead("", 5) == ""
