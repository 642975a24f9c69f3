"""The options of reading a corpus, which several commands have."""

import click

from pyramidions.cli.options import language_option, option_group

#: Of a `Corpus`: its fields, its configuration, and what to do with odd documents.
corpus_options = option_group(
    click.option("--source-field", help="Field with the document.  [default: article or article_text]"),
    click.option("--target-field", help="Field with the summary.  [default: abstract or abstract_text]"),
    click.option("--id-field", help="Field with the id.  [default: id or article_id, else the position]"),
    click.option("--query-field", help="Field with the query that the summary answers.  [default: no queries]"),
    click.option("--config", help="Configuration of a Hugging Face dataset that has several."),
    language_option,
    click.option("--skip-empty", is_flag=True, help="Leave out documents with an empty text, summary or query."),
    click.option("--number-repeated-ids", is_flag=True, help="Make repeated ids unique: a, a#2, a#3."),
)
