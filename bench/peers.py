"""Answers the benchmark's questions about other vector libraries, one JSON object a line.

Started with the names of two .npy files, vectors and queries (float32, unit length). Commands:
  peers                    -> which libraries are there, with versions
  build PEER               -> seconds
  search PEER EFFORT       -> seconds for all queries, and the ten rows of each
Everything runs on one thread; seconds are of processor time.
"""

import json
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

    def build(self):
        self.index.init_index(rows, M=M, ef_construction=CONSTRUCTION)
        self.index.set_num_threads(1)
        self.index.add_items(vectors, num_threads=1)

    def search(self, effort):
        self.index.set_ef(effort)
        return self.index.knn_query(queries, 10, num_threads=1)[0]


class Faiss:
    def __init__(self):
        import faiss

        self.version = faiss.__version__
        faiss.omp_set_num_threads(1)
        self.index = faiss.IndexHNSWFlat(dimensions, M, faiss.METRIC_INNER_PRODUCT)

    def build(self):
        self.index.hnsw.efConstruction = CONSTRUCTION
        self.index.add(vectors)

    def search(self, effort):
        self.index.hnsw.efSearch = effort
        return self.index.search(queries, 10)[1]


class FaissFlat(Faiss):
    def __init__(self):
        import faiss

        self.version = faiss.__version__
        faiss.omp_set_num_threads(1)
        self.index = faiss.IndexFlatIP(dimensions)

    def build(self):
        self.index.add(vectors)

    def search(self, effort):
        return self.index.search(queries, 10)[1]


class Usearch:
    dtype = "f32"

    def __init__(self):
        from usearch import __version__
        from usearch.index import Index

        self.version = __version__
        self.index = Index(ndim=dimensions, metric="cos", dtype=self.dtype, connectivity=M, expansion_add=CONSTRUCTION)

    def build(self):
        self.index.add(np.arange(rows), vectors, threads=1)

    def search(self, effort):
        self.index.expansion_search = effort
        return self.index.search(queries, 10, threads=1).keys


class UsearchInt8(Usearch):
    dtype = "i8"


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
        began = time.process_time()
        if command["do"] == "build":
            peer.build()
            answer["seconds"] = time.process_time() - began
        else:
            found = peer.search(command["effort"])
            answer["seconds"] = time.process_time() - began
            answer["found"] = found.tolist()
    print(json.dumps(answer), flush=True)
