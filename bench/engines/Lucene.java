import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.FSDirectory;

/** Answers searches with Lucene for the benchmark: java Lucene.java DOCUMENTS DIRECTORY. engines.py describes the protocol. */
class Lucene {
    static final String[] FIELDS = {"name", "summary", "description"};
    static final int PAGE = 20;

    /** All threads of the process: the compiler's and the collector's work counts, too. */
    static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    static IndexSearcher build(String documents, String directory) throws IOException {
        var dir = FSDirectory.open(Path.of(directory));
        var config = new IndexWriterConfig(new StandardAnalyzer()).setRAMBufferSizeMB(256);
        try (var writer = new IndexWriter(dir, config); var lines = Files.lines(Path.of(documents))) {
            for (var line : (Iterable<String>) lines::iterator) {
                var values = line.split("\t", -1);
                var document = new Document();
                document.add(new StoredField("id", values[0]));
                for (int i = 0; i < FIELDS.length; i++) {
                    document.add(new TextField(FIELDS[i], values[i + 1], Field.Store.NO));
                }
                writer.addDocument(document);
            }
            writer.commit();
        }
        return new IndexSearcher(DirectoryReader.open(dir));
    }

    static Query one(String kind, String field, String part) {
        switch (kind) {
            case "prefix":
                return new PrefixQuery(new Term(field, part));
            case "typo":
                return new FuzzyQuery(new Term(field, part), 1);
            case "phrase":
                return new PhraseQuery(field, part.split(" "));
            default:
                return new TermQuery(new Term(field, part));
        }
    }

    static Query query(String kind, String text) {
        var all = new BooleanQuery.Builder();
        for (var part : kind.equals("phrase") ? List.of(text) : List.of(text.split(" "))) {
            var any = new BooleanQuery.Builder();
            for (var field : FIELDS) {
                any.add(one(kind, field, part), Occur.SHOULD);
            }
            all.add(any.build(), Occur.MUST);
        }
        return all.build();
    }

    public static void main(String[] args) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        IndexSearcher searcher = null;
        for (var line = in.readLine(); line != null; line = in.readLine()) {
            var command = line.split(" ");
            if (command[0].equals("build")) {
                long began = cpuNanos();
                searcher = build(args[0], args[1]);
                System.out.println((cpuNanos() - began) / 1e9);
                continue;
            }
            var queries = new String[Integer.parseInt(command[2])];
            for (int i = 0; i < queries.length; i++) {
                queries[i] = in.readLine();
            }
            var out = new StringBuilder();
            for (var text : queries) {
                long began = cpuNanos();
                int hits = searcher.search(query(command[1], text), PAGE).scoreDocs.length;
                out.append((cpuNanos() - began) / 1000).append(' ').append(hits).append('\n');
            }
            System.out.print(out);
            System.out.flush();
        }
    }
}
