"""Answers searches with tantivy or Xapian for the benchmark, on one thread: engines.py ENGINE DOCUMENTS DIRECTORY.

Documents are lines of four fields between tabs: id, name, summary, description. Commands are lines:
  build          -> index the documents; answers with the seconds of processor time
  search KIND N  -> N lines with queries follow; answers with a line for each: microseconds of processor time, hits on the first page
KIND is words (all of them), prefix, typo (all words, each with at most one mistake) or phrase.
"""

import sys
import time

FIELDS = ["name", "summary", "description"]
PAGE = 20


class Tantivy:
    def __init__(self, directory):
        import tantivy

        self.tantivy = tantivy
        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("id", stored=True)
        for field in FIELDS:
            builder.add_text_field(field)
        self.schema = builder.build()
        self.index = tantivy.Index(self.schema, path=directory)

    def build(self, documents):
        writer = self.index.writer(heap_size=256 << 20, num_threads=1)
        for id, *texts in documents:
            writer.add_document(self.tantivy.Document(id=id, **dict(zip(FIELDS, texts))))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def search(self, kind, text):
        query, schema = self.tantivy.Query, self.schema
        one = {
            "words": lambda field, word: query.term_query(schema, field, word),
            "prefix": lambda field, word: query.fuzzy_term_query(schema, field, word, distance=0, prefix=True),
            "typo": lambda field, word: query.fuzzy_term_query(schema, field, word, distance=1, transposition_cost_one=True),
            "phrase": lambda field, words: query.phrase_query(schema, field, words),
        }[kind]
        must, should = self.tantivy.Occur.Must, self.tantivy.Occur.Should
        parts = [text.split()] if kind == "phrase" else text.split()
        q = query.boolean_query([(must, query.boolean_query([(should, one(field, part)) for field in FIELDS])) for part in parts])
        return len(self.searcher.search(q, PAGE, count=False).hits)


class Xapian:
    def __init__(self, directory):
        import xapian

        self.xapian = xapian
        self.directory = directory

    def build(self, documents):
        db = self.xapian.WritableDatabase(self.directory, self.xapian.DB_CREATE_OR_OVERWRITE)
        terms = self.xapian.TermGenerator()
        terms.set_database(db)
        terms.set_flags(terms.FLAG_SPELLING)
        for id, *texts in documents:
            document = self.xapian.Document()
            terms.set_document(document)
            terms.set_termpos(0)
            for text in texts:
                terms.index_text(text)
                terms.increase_termpos()
            document.set_data(str(id))
            db.add_document(document)
        db.commit()
        db.close()
        self.db = self.xapian.Database(self.directory)
        self.enquire = self.xapian.Enquire(self.db)

    def search(self, kind, text):
        query = self.xapian.Query
        words = text.split()
        if kind == "typo":  # there are no approximate terms: the nearest spelling stands in
            words = [word if self.db.term_exists(word) else self.db.get_spelling_suggestion(word, 1).decode() or word for word in words]
        q = {  # 0: all words that begin with the prefix
            "prefix": lambda: query(query.OP_WILDCARD, text, 0, query.WILDCARD_LIMIT_ERROR, query.OP_SYNONYM),
            "phrase": lambda: query(query.OP_PHRASE, words),
        }.get(kind, lambda: query(query.OP_AND, words))()
        self.enquire.set_query(q)
        return self.enquire.get_mset(0, PAGE).size()


def documents(name):
    with open(name, encoding="utf-8") as lines:
        for line in lines:
            id, *texts = line.rstrip("\n").split("\t")
            yield int(id), *texts


def main():
    engine, name, directory = sys.argv[1:]
    engine = {"tantivy": Tantivy, "xapian": Xapian}[engine](directory)
    for line in sys.stdin:
        command = line.split()
        if command[0] == "build":
            began = time.process_time()
            engine.build(documents(name))
            print(time.process_time() - began, flush=True)
            continue
        for query in [sys.stdin.readline().rstrip("\n") for _ in range(int(command[2]))]:
            began = time.process_time_ns()
            hits = engine.search(command[1], query)
            print((time.process_time_ns() - began) // 1000, hits)
        sys.stdout.flush()


main()
