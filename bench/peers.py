"""Answers the benchmark's questions about other vector libraries, one JSON object a line.

Started with the names of two .npy files, vectors and queries (float32, unit length). What libraries build that can be saved
stays in files beside them, and is built once. Commands:
  peers                    -> which libraries are there, with versions
  build PEER THREADS       -> seconds, and by how many bytes the process grew
  search PEER EFFORT       -> seconds for all queries, and the ten rows of each
All but building runs on one thread; seconds are of processor time.
"""

import json
import os
import re
import sys
import time

import numpy as np

M, CONSTRUCTION = 16, 200
vectors, queries = np.load(sys.argv[1]), np.load(sys.argv[2])
rows, dimensions = vectors.shape


class Hnswlib:
    def __init__(self):
        import hnswlib

        self.version = hnswlib.__version__ if hasattr(hnswlib, "__version__") else ""
        self.index = hnswlib.Index("ip", dimensions)

    def build(self, threads):
        self.index.init_index(rows, M=M, ef_construction=CONSTRUCTION)
        self.index.add_items(vectors, num_threads=threads)

    def save(self, name):
        self.index.save_index(name)

    def load(self, name):
        self.index.load_index(name)

    def search(self, effort):
        self.index.set_ef(effort)
        return self.index.knn_query(queries, 10, num_threads=1)[0]


class Faiss:
    def __init__(self):
        import faiss

        self.version, self.faiss = faiss.__version__, faiss
        self.index = faiss.IndexHNSWFlat(dimensions, M, faiss.METRIC_INNER_PRODUCT)
        self.index.hnsw.efConstruction = CONSTRUCTION

    def build(self, threads):
        self.faiss.omp_set_num_threads(threads)
        self.index.add(vectors)
        self.faiss.omp_set_num_threads(1)

    def save(self, name):
        self.faiss.write_index(self.index, name)

    def load(self, name):
        self.index = self.faiss.read_index(name)
        self.faiss.omp_set_num_threads(1)

    def search(self, effort):
        self.index.hnsw.efSearch = effort
        return self.index.search(queries, 10)[1]


class FaissFlat(Faiss):
    def __init__(self):
        import faiss

        self.version, self.faiss = faiss.__version__, faiss
        self.index = faiss.IndexFlatIP(dimensions)

    def search(self, effort):
        return self.index.search(queries, 10)[1]


class Usearch:
    dtype = "f32"

    def __init__(self):
        from usearch import __version__
        from usearch.index import Index

        self.version = __version__
        self.index = Index(ndim=dimensions, metric="cos", dtype=self.dtype, connectivity=M, expansion_add=CONSTRUCTION)

    def build(self, threads):
        self.index.add(np.arange(rows), vectors, threads=threads)

    def save(self, name):
        self.index.save(name)

    def load(self, name):
        self.index.load(name)

    def search(self, effort):
        self.index.expansion_search = effort
        return self.index.search(queries, 10, threads=1).keys


class UsearchInt8(Usearch):
    dtype = "i8"


def resident():
    """Bytes of memory, 0 where the system does not tell."""
    try:
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return 0


peers = {}
for name, make in {
    "hnswlib, f32": Hnswlib,
    "faiss HNSWFlat, f32": Faiss,
    "faiss flat, exact": FaissFlat,
    "usearch, f32": Usearch,
    "usearch, i8": UsearchInt8,
}.items():
    try:
        peers[name] = make()
    except ImportError:
        pass

for line in sys.stdin:
    command = json.loads(line)
    answer = {}
    if command["do"] == "peers":
        answer["peers"] = [{"name": n, "version": p.version} for n, p in peers.items()]
    else:
        peer = peers[command["peer"]]
        before, began = resident(), time.process_time()
        if command["do"] == "build":
            name = sys.argv[1] + "." + re.sub(r"\W+", "-", command["peer"])
            if os.path.exists(name + ".json"):
                peer.load(name)
                with open(name + ".json") as f:
                    answer["seconds"] = json.load(f)
            else:
                peer.build(command["threads"])
                answer["seconds"] = time.process_time() - began
                if hasattr(peer, "save"):
                    peer.save(name)
                    with open(name + ".json", "w") as f:
                        json.dump(answer["seconds"], f)
            answer["grown"] = resident() - before
        else:
            found = peer.search(command["effort"])
            answer["seconds"] = time.process_time() - began
            answer["found"] = found.tolist()
    print(json.dumps(answer), flush=True)
