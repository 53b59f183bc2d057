#!/usr/bin/env python3
"""Converts an export of Algolia, Elasticsearch or Typesense to documents and settings of svc.

Writes OUT.ndjson and OUT.settings.json, and prints what it could not convert.
docs/MIGRATION.md says how to export, and what becomes what.
"""
import argparse
import json
import re
import sys

lost = []  # what could not be converted


def read_json(name):
    """The JSON of a file; None without a name."""
    if not name:
        return None
    with open(name, encoding="utf-8") as f:
        return json.load(f)


def read_lines(name):
    """The objects of a file: one per line, or one array."""
    with open(name, encoding="utf-8") as f:
        start = f.read(1)
        f.seek(0)
        if start == "[":
            yield from json.load(f)
            return
        for line in f:
            if line.strip():
                yield json.loads(line)


def point(value):
    """A place as {"lat", "lng"}, from the forms of all three engines; None if it is not one."""
    if isinstance(value, str):
        parts = value.split(",")
        value = parts if len(parts) == 2 else None
    try:
        if isinstance(value, dict):
            return {"lat": float(value["lat"]), "lng": float(value.get("lng", value.get("lon")))}
        if isinstance(value, list) and len(value) == 2:
            return {"lat": float(value[0]), "lng": float(value[1])}
    except (KeyError, TypeError, ValueError):
        pass
    return None


def both_ways(synonyms, words):
    """Each of the words stands for all others."""
    for word in words:
        synonyms.setdefault(word, []).extend(w for w in words if w != word)


# Algolia

def algolia_documents(args):
    for record in read_lines(args.documents):
        record.pop("_highlightResult", None)
        if "_geoloc" in record:
            place = record.pop("_geoloc")
            if isinstance(place, list):
                lost.append(f"{record.get('objectID')}: only the first of several places")
                place = place[0] if place else None
            record["_geo"] = point(place)
        yield record


def algolia_settings(args):
    old, new = read_json(args.settings) or {}, {}
    unordered = False
    searchable = []
    for entry in old.get("searchableAttributes") or []:
        names = []
        for name in entry.split(","):
            m = re.fullmatch(r"\s*(unordered|ordered)\((.*)\)\s*", name)
            unordered = unordered or bool(m and m.group(1) == "unordered")
            names.append(m.group(2) if m else name.strip())
        searchable.append(names[0] if len(names) == 1 else names)
    if searchable:
        new["searchableAttributes"] = searchable
    if old.get("attributesForFaceting"):
        new["filterableAttributes"] = [re.sub(r"^\w+\((.*)\)$", r"\1", f) for f in old["attributesForFaceting"]]
    rules = {"typo": "typo", "geo": "sort", "words": "words", "proximity": "proximity", "attribute": "attribute", "exact": "exactness"}
    ranking = []
    for rule in old.get("ranking") or ["typo", "geo", "words", "filters", "proximity", "attribute", "exact", "custom"]:
        if rule == "custom":
            for custom in old.get("customRanking") or []:
                m = re.fullmatch(r"(asc|desc)\((.*)\)", custom)
                if m:
                    ranking.append(f"{m.group(2)}:{m.group(1)}")
                else:
                    lost.append(f"customRanking: {custom}")
        elif rule == "filters":
            lost.append("ranking: filters do not rank in svc; use rules or score functions")
        elif rule == "attribute" and unordered:
            ranking.append("attributeRank")
        elif rule in rules:
            ranking.append(rules[rule])
        else:
            m = re.fullmatch(r"(asc|desc)\((.*)\)", rule)
            if m:
                ranking.append(f"{m.group(2)}:{m.group(1)}")
            else:
                lost.append(f"ranking: {rule}")
    new["rankingRules"] = list(dict.fromkeys(ranking))
    if old.get("attributeForDistinct"):
        new["distinctAttribute"] = old["attributeForDistinct"]
    typos = {}
    if "minWordSizefor1Typo" in old or "minWordSizefor2Typos" in old:
        typos["minWordSizeForTypos"] = {"oneTypo": old.get("minWordSizefor1Typo", 4), "twoTypos": old.get("minWordSizefor2Typos", 8)}
    if old.get("disableTypoToleranceOnAttributes"):
        typos["disableOnAttributes"] = old["disableTypoToleranceOnAttributes"]
    if old.get("disableTypoToleranceOnWords"):
        typos["disableOnWords"] = old["disableTypoToleranceOnWords"]
    if old.get("typoTolerance") is False:
        typos["enabled"] = False
    if typos:
        new["typoTolerance"] = typos
    if old.get("maxValuesPerFacet"):
        new["faceting"] = {"maxValuesPerFacet": old["maxValuesPerFacet"]}
    synonyms = {}
    for s in read_json(args.synonyms) or []:
        kind = s.get("type")
        if kind == "synonym":
            both_ways(synonyms, s["synonyms"])
        elif kind in ("oneWaySynonym", "onewaysynonym"):
            synonyms.setdefault(s["input"], []).extend(s["synonyms"])
        else:
            lost.append(f"synonym of type {kind}: {s.get('objectID')}")
    if synonyms:
        new["synonyms"] = synonyms
    for name in ("unretrievableAttributes", "optionalWords", "ignorePlurals", "removeStopWords", "numericAttributesForFiltering"):
        if old.get(name):
            lost.append(f"settings: {name}")
    return new


# Elasticsearch

def elasticsearch_fields(mapping):
    """The properties of a mapping, as GET /INDEX/_mapping or elasticdump writes them, by dotted path."""
    while "properties" not in mapping:
        inner = mapping.get("mappings") or next((v for v in mapping.values() if isinstance(v, dict)), None)
        if inner is None:
            return {}
        mapping = inner
    fields = {}

    def walk(properties, path):
        for name, p in properties.items():
            if "properties" in p:
                if p.get("type") == "nested":
                    fields[path + name] = "nested"
                walk(p["properties"], path + name + ".")
            else:
                fields[path + name] = p.get("type", "object")
    walk(mapping["properties"], "")
    return fields


def elasticsearch_documents(args):
    fields = elasticsearch_fields(read_json(args.settings) or {"properties": {}})
    places = [f for f, kind in fields.items() if kind == "geo_point" and "." not in f]
    shapes = [f for f, kind in fields.items() if kind == "geo_shape" and "." not in f]
    for hit in read_lines(args.documents):
        document = dict(hit["_source"])
        document["id"] = re.sub(r"[^A-Za-z0-9_-]", "-", str(hit["_id"]))
        if document["id"] != str(hit["_id"]):
            lost.append(f"_id {hit['_id']} became {document['id']}")
        for field in places[:1]:
            if document.get(field) is not None:
                value = document[field]
                if isinstance(value, list):
                    value = value[::-1]  # arrays have the longitude first
                document["_geo"] = point(value)
        for field in shapes[:1]:
            if isinstance(document.get(field), dict):
                document["_geojson"] = document[field]
        yield document


def elasticsearch_settings(args):
    fields = elasticsearch_fields(read_json(args.settings) or {"properties": {}})
    text = [f for f, kind in fields.items() if kind in ("text", "search_as_you_type", "match_only_text")]
    exact = [f for f, kind in fields.items() if kind in ("keyword", "boolean", "date", "ip", "constant_keyword") or
             kind in ("long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long")]
    nested = [f for f, kind in fields.items() if kind == "nested"]
    new = {}
    if text:
        new["searchableAttributes"] = text
    inside = [f for f in exact if any(f.startswith(n + ".") for n in nested)]
    filterable = [f for f in exact if f not in inside]
    filterable += [{"attributePatterns": [n + ".*"], "features": {"elements": True, "filter": {"equality": True, "comparison": True}}} for n in nested]
    sortable = [f for f in exact if f not in inside]
    for kind, field in (("geo_point", "_geo"), ("geo_shape", "_geojson")):
        found = [f for f, k in fields.items() if k == kind]
        if found:
            filterable.append(field)
            if field == "_geo":
                sortable.append(field)
        lost.extend(f"{kind} {f}: svc has one {field}, from {found[0]}" for f in found[1:])
    if filterable:
        new["filterableAttributes"] = filterable
    if sortable:
        new["sortableAttributes"] = sortable
    for f, kind in fields.items():
        if kind == "dense_vector":
            lost.append(f"dense_vector {f}: add an embedder with the source userProvided, and send the vectors in _vectors")
        elif kind in ("percolator", "join", "rank_feature", "rank_features", "alias"):
            lost.append(f"{kind} {f}")
    return new


# Typesense

def typesense_documents(args):
    places = [f["name"] for f in (read_json(args.settings) or {}).get("fields", []) if f["type"] == "geopoint"]
    for document in read_lines(args.documents):
        for field in places[:1]:
            if document.get(field) is not None:
                document["_geo"] = point(document[field])
        old = str(document.get("id"))
        document["id"] = re.sub(r"[^A-Za-z0-9_-]", "-", old)
        if document["id"] != old:
            lost.append(f"id {old} became {document['id']}")
        yield document


def typesense_settings(args):
    old, new = read_json(args.settings) or {}, {}
    searchable, filterable, sortable = [], [], []
    for f in old.get("fields", []):
        name, kind = f["name"], f["type"]
        if name == ".*" or name == "id":
            continue
        if kind.startswith("geopoint"):
            if "_geo" in filterable:
                lost.append(f"geopoint {name}: svc has one _geo")
            else:
                filterable.append("_geo")
                sortable.append("_geo")
            continue
        if kind == "float[]" and (f.get("embed") or f.get("num_dim")):
            lost.append(f"vectors {name}: add an embedder, see docs/VECTORS.md")
            continue
        if f.get("index") is False:
            continue
        if kind in ("string", "string[]", "string*"):
            searchable.append(name)
        if f.get("facet") or kind not in ("string", "string[]", "string*", "object", "object[]", "auto"):
            filterable.append(name)
        if f.get("sort") or kind in ("int32", "int64", "float", "bool"):
            sortable.append(name)
    if searchable:
        new["searchableAttributes"] = searchable
    if filterable:
        new["filterableAttributes"] = filterable
    if sortable:
        new["sortableAttributes"] = sortable
    if old.get("default_sorting_field"):
        new["rankingRules"] = ["words", "typo", "proximity", "attribute", "sort", "exactness", old["default_sorting_field"] + ":desc"]
    if old.get("token_separators"):
        new["separatorTokens"] = old["token_separators"]
    if old.get("symbols_to_index"):
        new["nonSeparatorTokens"] = old["symbols_to_index"]
    synonyms = {}
    for s in (read_json(args.synonyms) or {}).get("synonyms", []):
        if s.get("root"):
            synonyms.setdefault(s["root"], []).extend(s["synonyms"])
        else:
            both_ways(synonyms, s["synonyms"])
    if synonyms:
        new["synonyms"] = synonyms
    return new


ENGINES = {
    "algolia": (algolia_documents, algolia_settings),
    "elasticsearch": (elasticsearch_documents, elasticsearch_settings),
    "typesense": (typesense_documents, typesense_settings),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("--documents", required=True, help="the exported documents: one JSON object per line, or an array")
    parser.add_argument("--settings", help="the exported settings, mapping or schema")
    parser.add_argument("--synonyms", help="the exported synonyms")
    parser.add_argument("--out", required=True, help="start of the names of the two files to write")
    args = parser.parse_args()
    documents, settings = ENGINES[args.engine]
    count = 0
    with open(args.out + ".ndjson", "w", encoding="utf-8") as f:
        for document in documents(args):
            f.write(json.dumps(document, ensure_ascii=False) + "\n")
            count += 1
    with open(args.out + ".settings.json", "w", encoding="utf-8") as f:
        json.dump(settings(args), f, ensure_ascii=False, indent=2)
        f.write("\n")
    print(f"{count} documents in {args.out}.ndjson, settings in {args.out}.settings.json")
    for what in lost:
        print("not converted:", what, file=sys.stderr)


if __name__ == "__main__":
    main()
