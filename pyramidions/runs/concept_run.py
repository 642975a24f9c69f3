"""Trains a model of concepts, and extracts from and scores the test split with it."""

import json
import shutil
from collections.abc import Iterator
from itertools import islice

from pyramidions.data.readers import Document
from pyramidions.extract import Budget
from pyramidions.extract.concepts import ConceptRanker, load_concepts
from pyramidions.extract.concepts.files import files_of
from pyramidions.files.atomic import atomic_file, atomic_folder, write_file
from pyramidions.files.parallel import available_cores
from pyramidions.runs.concepts import count, fit, read_papers
from pyramidions.runs.contexts import learn_contexts
from pyramidions.runs.kinds import CONCEPTS
from pyramidions.runs.policy import fit_policy, gain
from pyramidions.runs.run import UNTRAINED, Run
from pyramidions.runs.steps import Command, Step
from pyramidions.text.language import ENGLISH
from pyramidions.text.words import count_words

# Validation documents that decide about a policy, at most.
_VALID = 1_000
_CARD = """# {model}

A model of concepts: it predicts which words and pairs of words of a document its summary holds, and extracts sentences
that cover them{how}. Trained on {documents:,} documents by `pyramidions train --kind concepts`.

    pyramidions extract --method {model} paper.pdf

Extracts of {words} words of the test split:

```
{scores}
```
"""


class ConceptRun(Run):
    """Counts concepts, fits trees to them, and writes the model."""

    def own_steps(self) -> list[Step]:
        places = self.places
        return [
            self.step("papers", self.read, places.papers),
            self.step("training", self.fit, places.fitted),
            self.step("summaries", self.extract, places.work / CONCEPTS),
            self.step("scores", self.score, places.table, out=places.table, cwd=places.work),
            self.step("export", self.write, places.model),
        ]

    def read(self) -> list[Command]:
        """Read the documents as a model of concepts does, and count the words of their summaries."""
        words: list[int] = []
        if (language := self.language()) != ENGLISH:
            self.say(f"The documents are read as {language}; --language sets another language.")

        def documents() -> Iterator[Document]:
            for document in self.in_one_language("train"):
                words.append(count_words(document.target))
                yield document

        read_papers(documents(), self.plan.documents, self.places.papers, available_cores())
        self.state.note(words=round(sum(words) / len(words)))
        return []

    def in_one_language(self, split: str) -> Iterator[Document]:
        """Yield the documents of a split, all in one language: a model knows the words of one."""
        language = self.language()
        return (document._replace(language=language) for document in self.documents(split))

    def fit(self) -> list[Command]:
        """Count concepts, fit the trees, and a policy, which is kept if it helps validation documents."""
        papers, seed, workers = self.places.papers, self.arguments.seed, available_cores()
        counts = count(papers)
        contexts = learn_contexts(papers, counts, seed, workers, self.say)
        model = fit(papers, counts, seed, self.say, contexts)
        model = model._replace(words=self.state.facts["words"], language=self.language())
        policy = fit_policy(papers, model, counts, seed, workers, self.say)
        valid = list(islice(self.in_one_language("valid"), _VALID))
        gained = 100 * gain(valid, model, policy, workers)
        self.say(f"The policy changes the mean of ROUGE-1 and ROUGE-2 of the validation documents by {gained:+.2f}.")
        if gained > 0:
            model = model._replace(policy=policy)
        else:
            self.say("So coverage chooses.")
        about = {"documents": self.plan.documents, "seed": self.arguments.seed}
        with atomic_folder(self.places.fitted) as partial:
            for name, content in files_of(model, about).items():
                write_file(partial / name, content)
        return []

    def extract(self) -> list[Command]:
        """Extract from the test split by concepts, by HipoRank and by lead."""
        words, places = self.state.facts["words"], self.places
        number = 0
        with atomic_file(places.references) as file:
            for document in self.documents("test"):
                number += 1
                file.write(json.dumps({"id": document.id, "summary": document.target}).encode() + b"\n")
        concepts = ConceptRanker(load_concepts(places.fitted), Budget(words))
        self.write_extracts(number, words, {**UNTRAINED, CONCEPTS: concepts})
        return []

    def score(self) -> list[Command]:
        return self.score_command("--references", self.places.references.name)

    def write(self) -> list[Command]:
        """Write the model with a card."""
        words, scores = self.state.facts["words"], self.places.table.read_text().rstrip()
        how = ", one by one, by a policy" if load_concepts(self.places.fitted).policy is not None else ""
        card = _CARD.format(
            how=how, documents=self.plan.documents, words=words, scores=scores, model=self.places.model.name
        )
        with atomic_folder(self.places.model) as partial:
            for file in self.places.fitted.iterdir():
                shutil.copyfile(file, partial / file.name)
            write_file(partial / "README.md", card.encode())
        return []
