// The operations of the edit language, for the code that translate writes.
//
// Values: () undefined, bool Boolean, integer BigInt, float Number, string and character
// String, array Array, map Map, range Range, function Function. A field of the document that no
// script has looked at is a Raw: its place in the document; see open().
//
// host is what host.go offers. Everything that takes memory or time in proportion to something is charged for ahead: by
// work and charge here, by the host where it makes values of JSON.
(function (host) {
"use strict";

const LARGEST = (1n << 63n) - 1n, SMALLEST = -(1n << 63n);
const END = Symbol("end"), MAP = Symbol("map");

let left = 0, line = 0; // left: operations
let until = 0; // at which left the run is to pause
let origin = new Map(); // what fields of the document were when first looked at

class Raw { constructor(place) { this.place = place; } }
class Range { constructor(start, end) { this.start = start; this.end = end; } } // [start, end)
// A fatal failure cannot be caught by a script.
class Failure { constructor(value, fatal) { this.value = value; this.fatal = fatal; } }

function raise(value) { throw new Failure(value, false); }
function limit() { throw new Failure("the script takes too many operations; is there a loop without an end?", true); }

// pause lets others work. What is no number of operations is too many.
function pause() {
  if (!(left >= 0)) limit();
  until = Math.max(left - 1000, 0);
  host.pause();
}

// t counts an operation, at the beginning of a statement.
function t(at) { line = at; if (!(--left >= until)) pause(); }

// work counts operations of the runtime that grow with a number of elements, charge those that grow with
// the size of a string; so they bound time and memory alike.
function work(elements) { left -= elements; if (!(left >= until)) pause(); }
function charge(size) { left -= size / 16; if (!(left >= until)) pause(); }

function caught(e) {
  if (e instanceof Failure) {
    if (e.fatal) throw e;
    return e.value;
  }
  throw e;
}

function typeName(v) {
  switch (typeof v) {
  case "undefined": return "()";
  case "boolean": return "bool";
  case "bigint": return "i64";
  case "number": return "f64";
  case "string": return "string";
  case "function": return "Fn";
  }
  if (Array.isArray(v)) return "array";
  if (v instanceof Map) return "map";
  return "range";
}

function unknown(what) { raise("there is no " + what); }
function constant(name) { raise(name + " is a constant and cannot be changed"); }
function unfit(op, ...operands) { raise(op + " does not work on " + operands.map(typeName).join(" and ")); }

function bool(v) {
  if (typeof v !== "boolean") raise("a condition must be true or false, this one is " + typeName(v));
  return v;
}

function integer(v, what) {
  if (typeof v !== "bigint") raise(what + " must be an integer, not " + typeName(v));
  return v;
}

function string(v, what) {
  if (typeof v !== "string") raise(what + " must be a string, not " + typeName(v));
  return v;
}

function callable(v) {
  if (typeof v !== "function") raise("a function is needed, not " + typeName(v));
  return v;
}

function parse(place) {
  const result = host.parse(place, MAP, Math.floor(left));
  if (result === undefined) limit();
  left = result[1];
  work(0);
  return revive(result[0]);
}

// revive makes the maps in what host.parse returns, which has charged for them.
function revive(v) {
  if (!Array.isArray(v)) return v;
  if (v[0] !== MAP) {
    for (let i = 0; i < v.length; i++) v[i] = revive(v[i]);
    return v;
  }
  const m = new Map();
  for (let i = 1; i < v.length; i += 2) m.set(v[i], revive(v[i + 1]));
  return m;
}

// newMap charges for a map; keyed for the look at or for a field, whose name is hashed as a whole.
function newMap(fields) { work(8 + 2 * fields); return new Map(); }
function keyed(k) { charge(k.length); return k; }

// open makes the value of a field that no script has looked at yet.
function open(m, k, v) {
  if (!(v instanceof Raw)) return v;
  const value = parse(v.place);
  if (typeof value !== "object") origin.set(k, {place: v.place, value});
  m.set(k, value);
  return value;
}

function openAll(m) { m.forEach((v, k) => open(m, k, v)); return m; } // forEach is several times faster here than for

function copy(v) {
  if (typeof v !== "object") return v;
  if (Array.isArray(v)) { work(v.length + 4); return v.map(copy); }
  if (v instanceof Map) {
    const m = newMap(v.size);
    v.forEach((x, k) => m.set(keyed(k), x instanceof Raw ? x : copy(x)));
    return m;
  }
  return v;
}

// Arithmetic.

function checked(r) {
  if (r > LARGEST || r < SMALLEST) raise("an integer does not fit 64 bits");
  return r;
}

function finite(r) {
  if (!Number.isFinite(r)) raise("a number is not finite");
  return r;
}

function isNumber(v) { return typeof v === "bigint" || typeof v === "number"; }

function add(a, b) {
  if (typeof a === "bigint" && typeof b === "bigint") return checked(a + b);
  if (isNumber(a) && isNumber(b)) return finite(Number(a) + Number(b));
  if (typeof a === "string" || typeof b === "string") {
    const x = show(a), y = show(b);
    charge(x.length + y.length);
    return x + y;
  }
  if (Array.isArray(a) && Array.isArray(b)) { work(a.length + b.length + 4); return copy(a).concat(copy(b)); }
  if (a instanceof Map && b instanceof Map) return mixin(copy(a), b);
  unfit("+", a, b);
}

// addTo is +=, which changes arrays and maps where they are.
function addTo(a, b) {
  if (Array.isArray(a)) {
    if (Array.isArray(b)) { const n = b.length; work(n); for (let i = 0; i < n; i++) a.push(b[i]); }
    else { work(1); a.push(b); }
    return a;
  }
  if (a instanceof Map && b instanceof Map) return mixin(a, b);
  return add(a, b);
}

function mixin(m, other) {
  work(2 * openAll(other).size);
  other.forEach((v, k) => m.set(keyed(k), copy(v)));
  return m;
}

function arithmetic(op, ofIntegers, ofFloats) {
  return function (a, b) {
    if (typeof a === "bigint" && typeof b === "bigint") return checked(ofIntegers(a, b));
    if (isNumber(a) && isNumber(b)) return finite(ofFloats(Number(a), Number(b)));
    return unfit(op, a, b);
  };
}

function nonZero(b) { if (b === 0n) raise("division by zero"); return b; }

const minus = arithmetic("-", (a, b) => a - b, (a, b) => a - b);

// sub also removes a string from another, everywhere.
function sub(a, b) {
  if (typeof a !== "string" || typeof b !== "string") return minus(a, b);
  charge(a.length + b.length);
  return b === "" ? a : host.replace(a, b, "");
}

const mul = arithmetic("*", (a, b) => a * b, (a, b) => a * b);
const div = arithmetic("/", (a, b) => a / nonZero(b), (a, b) => a / b);
const rem = arithmetic("%", (a, b) => a % nonZero(b), (a, b) => a % b);
const pow = arithmetic("**", (a, b) => {
  if (b < 0n) raise("an integer cannot be raised to a negative power");
  if (a === 0n || a === 1n) return b === 0n ? 1n : a;
  if (a === -1n) return b % 2n === 0n ? 1n : -1n;
  if (b > 63n) raise("an integer does not fit 64 bits");
  return a ** b;
}, (a, b) => a ** b);

function shift(op, f) {
  return function (a, b) {
    if (typeof a !== "bigint" || typeof b !== "bigint") unfit(op, a, b);
    return b < 0n ? f(a, b < -64n ? -64n : b) : f(a, b > 64n ? 64n : b);
  };
}

const shl = shift("<<", (a, b) => BigInt.asIntN(64, a << b));
const shr = shift(">>", (a, b) => BigInt.asIntN(64, a >> b));

function bits(op, ofIntegers, ofBools) {
  return function (a, b) {
    if (typeof a === "bigint" && typeof b === "bigint") return ofIntegers(a, b);
    if (typeof a === "boolean" && typeof b === "boolean") return ofBools(a, b);
    return unfit(op, a, b);
  };
}

const and = bits("&", (a, b) => a & b, (a, b) => a && b);
const or = bits("|", (a, b) => a | b, (a, b) => a || b);
const xor = bits("^", (a, b) => a ^ b, (a, b) => a !== b);

function neg(a) {
  if (typeof a === "bigint") return checked(-a);
  return typeof a === "number" ? -a : unfit("-", a);
}

function pos(a) { return isNumber(a) ? a : unfit("+", a); }
function not(a) { return typeof a === "boolean" ? !a : unfit("!", a); }

// Comparison.

function equal(a, b) {
  if (typeof a === "string" && typeof b === "string") {
    if (a.length !== b.length) return false;
    charge(a.length);
    return a === b;
  }
  if (typeof a !== "object" || typeof b !== "object") return isNumber(a) && isNumber(b) ? a == b : a === b;
  if (Array.isArray(a) && Array.isArray(b)) {
    work(a.length);
    return a.length === b.length && a.every((x, i) => equal(x, b[i]));
  }
  if (a instanceof Map && b instanceof Map) {
    work(a.size);
    if (a.size !== b.size) return false;
    for (const [k, v] of openAll(a)) if (!b.has(keyed(k)) || !equal(v, open(b, k, b.get(k)))) return false;
    return true;
  }
  return a instanceof Range && b instanceof Range && a.start === b.start && a.end === b.end;
}

function same(a, b) { return equal(a, b); }
function differ(a, b) { return !equal(a, b); }

// matches tells whether a case of switch fits.
function matches(pattern, v) { return pattern instanceof Range ? isNumber(v) && v >= pattern.start && v < pattern.end : equal(pattern, v); }

function compared(a, b) { return (isNumber(a) && isNumber(b)) || (typeof a === typeof b && (typeof a === "string" || typeof a === "boolean")); }
function less(a, b) { return compared(a, b) && order(a, b) < 0; }
function lessEqual(a, b) { return compared(a, b) && order(a, b) <= 0; }
function more(a, b) { return compared(a, b) && order(a, b) > 0; }
function moreEqual(a, b) { return compared(a, b) && order(a, b) >= 0; }

// order compares numbers, strings or bools.
function order(a, b) {
  if (typeof a === "string") { charge(a.length + b.length); return host.compare(a, b); }
  return a < b ? -1 : a > b ? 1 : 0;
}

function orderOf(a, b) {
  if (typeName(a) !== typeName(b) && !compared(a, b) || typeof a === "object" || typeof a === "function") unfit("sort", a, b);
  return order(a, b);
}

function contains(of, v) {
  if (typeof of === "string") { charge(of.length + string(v, "what a string contains").length); return host.contains(of, v); }
  if (Array.isArray(of)) { work(of.length); return of.some((x) => equal(x, v)); }
  if (of instanceof Map) return of.has(keyed(string(v, "the name of a field")));
  if (of instanceof Range) return isNumber(v) && v >= of.start && v < of.end;
  return unfit("in", of);
}

// Text.

function float(f) {
  const size = Math.abs(f);
  if (size !== 0 && (size >= 1e13 || size < 1e-7)) return f.toExponential().replace("+", "");
  const s = String(f);
  return Number.isInteger(f) ? (Object.is(f, -0) ? "-0.0" : s + ".0") : s.includes("e") ? f.toFixed(20).replace(/0+$/, "") : s;
}

// joined puts strings together.
function joined(parts, by) {
  let size = by.length * parts.length;
  for (let i = 0; i < parts.length; i++) size += parts[i].length;
  charge(size);
  return parts.join(by);
}

// quoted is a JSON string; most are little longer than what they hold.
function quoted(s) { charge(2 * s.length); return JSON.stringify(s); }

// show is what to_string and strings in backticks make of a value.
function show(v, inside, depth = 0) {
  if (depth > 128) raise("a value is nested too deeply");
  switch (typeof v) {
  case "undefined": return inside ? "()" : "";
  case "string": return inside ? quoted(v) : v;
  case "number": return float(v);
  case "function": return "Fn";
  case "object":
    work(4);
    if (Array.isArray(v)) { work(v.length); return "[" + joined(v.map((x) => show(x, true, depth + 1)), ", ") + "]"; }
    if (v instanceof Map) return "#{" + joined(entries(openAll(v), (k, x) => quoted(k) + ": " + show(x, true, depth + 1)), ", ") + "}";
    return v.start + ".." + v.end;
  }
  return String(v);
}

// entries makes an array of what f returns for each field.
function entries(m, f) {
  work(2 * m.size);
  const list = [];
  m.forEach((v, k) => { list.push(f(k, v)); });
  return list;
}

function text(parts) { work(parts.length); return joined(parts.map((p) => show(p)), ""); }

function chars(s) { work(s.length); return Array.from(s); }
function length(s) { charge(s.length); return host.len(s); }
function slice(s, from, to) { charge(s.length); return host.slice(s, from, to === undefined ? s.length : to); }

// Arrays, maps, ranges.

function array(items) { work(items.length + 4); return items; }

function map(list) {
  const m = newMap(list.length / 2);
  for (let i = 0; i < list.length; i += 2) m.set(keyed(list[i]), list[i + 1]);
  return m;
}

function range(start, end, inclusive) {
  integer(start, "the start of a range");
  integer(end, "the end of a range");
  return new Range(start, inclusive ? end + 1n : end);
}

// place finds an index: negative ones count from the end. Not found is −1.
function place(i, length) {
  const n = Number(integer(i, "an index"));
  return n < 0 ? (n + length < 0 ? -1 : n + length) : n < length ? n : -1;
}

// span finds the part that a range, or a start and a length, names.
function span(length, start, count) {
  if (start instanceof Range) { count = start.end - start.start; start = start.start; }
  let from = Number(integer(start, "a start"));
  if (from < 0) from = Math.max(0, from + length);
  from = Math.min(from, length);
  const n = count === undefined ? length : Number(integer(count, "a length"));
  return [from, Math.min(length, from + Math.max(0, n))];
}

function missing(i) { raise("there is no element at " + show(i)); }

function get(of, name) {
  if (of instanceof Map) return open(of, name, of.get(keyed(name)));
  if (of === undefined) raise("() has no property " + name);
  const property = own(properties, name);
  if (property === undefined || of instanceof Range && name !== "start" && name !== "end") raise(typeName(of) + " has no property " + name);
  return property(of);
}

const properties = {
  len: (of) => call(of, "len", []),
  is_empty: (of) => call(of, "is_empty", []),
  bytes: (of) => call(of, "bytes", []),
  chars: (of) => call(of, "chars", []),
  int: (of) => call(of, "int", []),
  fraction: (of) => call(of, "fraction", []),
  is_odd: (of) => call(of, "is_odd", []),
  is_even: (of) => call(of, "is_even", []),
  is_zero: (of) => call(of, "is_zero", []),
  start: (of) => of instanceof Range ? of.start : unknown("property start"),
  end: (of) => of instanceof Range ? of.end : unknown("property end"),
};

function put(of, name, value) {
  if (!(of instanceof Map)) raise(typeName(of) + " has no property " + name + " to set");
  work(2);
  of.set(keyed(name), value);
}

function getAt(of, at) {
  if (Array.isArray(of)) {
    const i = place(at, of.length);
    return i < 0 ? missing(at) : of[i];
  }
  if (of instanceof Map) return get(of, string(at, "the name of a field"));
  if (typeof of === "string") {
    const n = length(of);
    if (at instanceof Range) return slice(of, ...span(n, at));
    const i = place(at, n);
    return i < 0 ? missing(at) : slice(of, i, i + 1);
  }
  return raise(typeName(of) + " has no elements");
}

// putAt sets an element; of a string it returns the new one.
function putAt(of, at, value) {
  if (Array.isArray(of)) {
    const i = place(at, of.length);
    if (i < 0) missing(at);
    of[i] = value;
  } else if (of instanceof Map) put(of, string(at, "the name of a field"), value);
  else if (typeof of === "string") {
    const i = place(at, length(of));
    if (i < 0) missing(at);
    return withChar(of, i, string(value, "a character"));
  } else raise(typeName(of) + " has no elements");
}

// withChar puts another string in the place of a character.
function withChar(s, i, c) { charge(s.length + c.length); return slice(s, 0, i) + c + slice(s, i + 1); }

function iterate(v) {
  if (v instanceof Range) {
    let i = v.start;
    return () => i < v.end ? i++ : END;
  }
  const list = typeof v === "string" ? chars(v) : Array.isArray(v) ? copy(v) : raise("for cannot go through " + typeName(v));
  let i = 0;
  return () => i < list.length ? list[i++] : END;
}

// A function that assigns to this leaves the new value in here when it ends. Its property rebinds tells callers to look.
let here;
function rebinding(f) { f.rebinds = true; return f; }
function rebound(...value) { if (value.length > 0) here = value[0]; return here; }

// invoke calls a function; v.call(f, …) calls f with v as this.
function invoke(f, args) {
  if (typeof f !== "function" && typeof args[0] === "function") return call(f, args[0], args.slice(1));
  return callable(f)(...args);
}
function curry(f, args) { callable(f); return (...more) => f(...copy(args), ...more); }

// Methods. What changes a string leaves the new one in mutated.

let mutated;
function changed(old) { const s = mutated === undefined ? old : mutated; mutated = undefined; return s; }
function mutate(s, result) { charge(s.length); mutated = s; return result; }

// pieces is split; an empty delimiter cuts into characters.
function pieces(s, by) {
  if (by === "") return s === "" ? [""] : ["", ...chars(s), ""];
  charge(s.length + by.length);
  work(host.count(s, by) + 4);
  return host.split(s, by);
}

const ofStrings = {
  len: (s) => BigInt(length(s)),
  is_empty: (s) => s === "",
  bytes: (s) => { charge(s.length); return BigInt(host.bytes(s)); },
  to_upper: (s) => { charge(3 * s.length); return s.toUpperCase(); },
  to_lower: (s) => { charge(3 * s.length); return s.toLowerCase(); },
  make_upper: (s) => mutate(ofStrings.to_upper(s)),
  make_lower: (s) => mutate(ofStrings.to_lower(s)),
  trim: (s) => { charge(s.length); return mutate(s.trim()); },
  contains: (s, x) => contains(s, x),
  starts_with: (s, x) => { charge(string(x, "a prefix").length); return s.startsWith(x); },
  ends_with: (s, x) => { charge(string(x, "a suffix").length); return s.endsWith(x); },
  index_of: (s, x, from) => {
    const n = length(s), start = from === undefined ? 0 : span(n, from)[0];
    charge(s.length + string(x, "what is looked for").length);
    return BigInt(host.index(s, x, start));
  },
  sub_string: (s, start, count) => slice(s, ...span(length(s), start, count)),
  crop: (s, start, count) => mutate(ofStrings.sub_string(s, start, count)),
  replace: (s, from, to) => {
    charge(s.length + string(from, "what is replaced").length);
    const n = host.count(s, from);
    charge(s.length + n * string(to, "the replacement").length);
    return mutate(host.replace(s, from, to));
  },
  split: (s, by, count) => {
    if (by === undefined) { work(s.length / 2 + 4); return host.fields(s); }
    if (typeof by === "bigint") { const n = length(s), i = span(n, by)[0]; return [slice(s, 0, i), slice(s, i)]; }
    const parts = pieces(s, string(by, "the delimiter"));
    if (count === undefined) return parts;
    const n = Math.max(1, Number(integer(count, "the number of parts")));
    return parts.length <= n ? parts : parts.slice(0, n - 1).concat([joined(parts.slice(n - 1), by)]);
  },
  split_rev: (s, by, count) => {
    const parts = ofStrings.split(s, by);
    if (count !== undefined && parts.length > count) {
      const first = Math.max(0, parts.length - Math.max(1, Number(integer(count, "the number of parts"))));
      parts.splice(0, first + 1, joined(parts.slice(0, first + 1), by));
    }
    return parts.reverse();
  },
  chars: (s) => chars(s),
  to_chars: (s) => chars(s),
  get: (s, i) => { const at = place(i, length(s)); return at < 0 ? undefined : slice(s, at, at + 1); },
  set: (s, i, c) => { const at = place(i, length(s)); return mutate(at < 0 ? s : withChar(s, at, string(c, "a character"))); },
  pad: (s, size, c) => {
    const missing = Number(integer(size, "a length")) - length(s);
    if (missing <= 0) return mutate(s);
    charge(s.length + 2 * missing * string(c, "the padding").length);
    return mutate(s + slice(c.repeat(missing), 0, missing));
  },
  truncate: (s, n) => mutate(slice(s, 0, Math.min(s.length, Math.max(0, Number(integer(n, "a length")))))),
  clear: () => mutate(""),
  append: (s, x) => mutate(add(s, show(x))),
  push: (s, x) => mutate(add(s, show(x))),
  remove: (s, x) => ofStrings.replace(s, string(x, "what is removed"), ""),
  pop: (s, n) => {
    const size = length(s), count = n === undefined ? 1 : Math.max(0, Number(integer(n, "a number of characters")));
    const from = Math.max(0, size - count);
    const last = slice(s, from);
    return mutate(slice(s, 0, from), n === undefined && last === "" ? undefined : last);
  },
  to_int: (s) => length(s) === 1 ? BigInt(s.codePointAt(0)) : raise("only a character has a number, not " + quoted(s)),
  parse_int: (s, radix) => {
    charge(3 * s.length);
    const base = radix === undefined ? 10n : integer(radix, "the radix"), body = s.trim().toLowerCase().replace(/^[+-]/, "");
    let n = 0n;
    if (body === "" || base < 2n || base > 36n) raise(quoted(s) + " is not an integer");
    for (let i = 0; i < body.length; i++) {
      work(1);
      const digit = "0123456789abcdefghijklmnopqrstuvwxyz".indexOf(body[i]);
      if (digit < 0 || BigInt(digit) >= base) raise(quoted(s) + " is not an integer");
      n = n * base + BigInt(digit);
      if (n > LARGEST + 1n) break;
    }
    return checked(s.trim().startsWith("-") ? -n : n);
  },
  parse_float: (s) => {
    work(s.length / 2);
    const body = s.trim();
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(body)) raise(quoted(s) + " is not a number");
    return finite(Number(body));
  },
};

const ofArrays = {
  len: (a) => BigInt(a.length),
  is_empty: (a) => a.length === 0,
  push: (a, x) => { work(1); a.push(x); },
  append: (a, x) => { addTo(a, x); },
  insert: (a, at, x) => { work(a.length); a.splice(span(a.length, at)[0], 0, x); },
  pop: (a) => a.pop(),
  shift: (a) => { work(a.length); return a.shift(); },
  remove: (a, at) => { work(a.length); const i = place(at, a.length); return i < 0 ? undefined : a.splice(i, 1)[0]; },
  reverse: (a) => { work(a.length); a.reverse(); },
  get: (a, at) => { const i = place(at, a.length); return i < 0 ? undefined : copy(a[i]); },
  set: (a, at, x) => { const i = place(at, a.length); if (i >= 0) a[i] = x; },
  truncate: (a, n) => { a.length = Math.min(a.length, Math.max(0, Number(integer(n, "a length")))); },
  pad: (a, length, x) => { for (let n = Number(integer(length, "a length")) - a.length; n > 0; n--) { work(1); a.push(copy(x)); } },
  chop: (a, n) => { work(a.length); a.splice(0, Math.max(0, a.length - Number(integer(n, "a length")))); },
  clear: (a) => { a.length = 0; },
  extract: (a, start, count) => { work(a.length + 4); return copy(a.slice(...span(a.length, start, count))); },
  split: (a, at) => { work(a.length + 4); return a.splice(span(a.length, at)[0]); },
  splice: (a, start, count, items) => {
    if (start instanceof Range) { items = count; count = undefined; }
    const [from, to] = span(a.length, start, count);
    if (!Array.isArray(items)) raise("what is put into an array must be an array, not " + typeName(items));
    work(a.length + items.length);
    a.splice(from, to - from, ...items);
  },
  contains: (a, x) => contains(a, x),
  index_of: (a, x, from) => {
    work(a.length);
    const first = start(a, from);
    return BigInt(a.findIndex((v, i) => i >= first && (typeof x === "function" ? test(x, v, i) : equal(v, x))));
  },
  find: (a, f, from) => { work(a.length); const first = start(a, from); return copy(a.find((v, i) => i >= first && test(f, v, i))); },
  find_map: (a, f, from) => { for (let i = start(a, from); i < a.length; i++) { work(1); const r = apply(f, a[i], i); if (r !== undefined) return r; } },
  map: (a, f) => { work(a.length); return a.map((v, i) => apply(f, v, i)); },
  for_each: (a, f) => {
    work(a.length);
    for (let i = 0; i < a.length; i++) {
      callable(f).call(a[i], BigInt(i));
      if (f.rebinds) a[i] = rebound();
    }
  },
  filter: (a, f) => { work(a.length); return copy(a.filter((v, i) => test(f, v, i))); },
  some: (a, f) => (work(a.length), a).some((v, i) => test(f, v, i)),
  all: (a, f) => (work(a.length), a).every((v, i) => test(f, v, i)),
  reduce: (a, f, start) => { work(a.length); let r = typeof start === "function" ? start() : start; a.forEach((v, i) => { r = callable(f)(r, copy(v), BigInt(i)); }); return r; },
  reduce_rev: (a, f, start) => { work(a.length); return ofArrays.reduce(a.slice().reverse(), f, start); },
  sort: (a, f) => {
    work(a.length * Math.ceil(Math.log2(a.length + 2)));
    if (f === undefined) a.sort(orderOf);
    else a.sort((x, y) => { const r = callable(f)(copy(x), copy(y)); return typeof r === "boolean" ? (r ? -1 : 1) : Number(integer(r, "what a comparison returns")); });
  },
  sort_desc: (a) => { ofArrays.sort(a); ofArrays.reverse(a); },
  order: (a, f) => { const sorted = copy(a); ofArrays.sort(sorted, f); return sorted; },
  order_desc: (a) => { const sorted = copy(a); ofArrays.sort_desc(sorted); return sorted; },
  dedup: (a, f) => { work(a.length); let n = 0; for (const x of a.slice()) if (n === 0 || !(f === undefined ? equal(a[n - 1], x) : bool(callable(f)(a[n - 1], x)))) a[n++] = x; a.length = n; },
  drain: (a, f, count) => part(a, f, count, true),
  retain: (a, f, count) => part(a, f, count, false),
  zip: (a, b, f) => {
    if (!Array.isArray(b)) raise("an array is zipped with another, not with " + typeName(b));
    work(a.length + 4);
    return a.slice(0, b.length).map((v, i) => callable(f)(copy(v), copy(b[i]), BigInt(i)));
  },
  join: (a, by) => { work(a.length); return joined(a.map((v) => show(v)), by === undefined ? "" : show(by)); },
};

function start(a, from) { return from === undefined ? 0 : span(a.length, from)[0]; }
function apply(f, v, i) { return callable(f).call(v, copy(v), BigInt(i)); }
function test(f, v, i) { return bool(apply(f, v, i)); }

// part takes some elements out of an array and returns them: those of a range or that pass a test; or all others.
function part(a, f, count, chosen) {
  work(2 * a.length + 8);
  const [from, to] = typeof f === "function" ? [] : span(a.length, f, count);
  const out = [], rest = [];
  a.forEach((v, i) => { ((typeof f === "function" ? test(f, v, i) : i >= from && i < to) === chosen ? out : rest).push(v); });
  a.length = 0;
  for (const v of rest) a.push(v);
  return out;
}

const ofMaps = {
  len: (m) => BigInt(m.size),
  is_empty: (m) => m.size === 0,
  clear: (m) => { m.clear(); },
  contains: (m, k) => contains(m, k),
  get: (m, k) => copy(get(m, string(k, "the name of a field"))),
  set: (m, k, v) => { put(m, string(k, "the name of a field"), v); },
  mixin: (m, other) => { mixin(m, other); },
  fill_with: (m, other) => { openAll(other).forEach((v, k) => { if (!m.has(keyed(k))) put(m, k, copy(v)); }); },
  remove: (m, k) => { const v = get(m, string(k, "the name of a field")); m.delete(k); return v; },
  keys: (m) => entries(m, (k) => k),
  values: (m) => entries(openAll(m), (k, v) => copy(v)),
  filter: (m, f) => {
    const r = newMap(m.size);
    openAll(m).forEach((v, k) => { if (bool(callable(f)(k, copy(v)))) r.set(keyed(k), copy(v)); });
    return r;
  },
  drain: (m, f) => { const r = ofMaps.filter(m, f); r.forEach((v, k) => { m.delete(keyed(k)); }); return r; },
  retain: (m, f) => {
    const keep = ofMaps.filter(m, f), out = newMap(m.size);
    m.forEach((v, k) => { if (!keep.has(keyed(k))) out.set(k, v); });
    out.forEach((v, k) => { m.delete(keyed(k)); });
    return out;
  },
  to_json: (m) => json(m, 0),
};

function asFloat(f) { return (x) => finite(f(Number(x))); }

const ofNumbers = {
  abs: (x) => typeof x === "bigint" ? checked(x < 0n ? -x : x) : Math.abs(x),
  sign: (x) => x > 0 ? 1n : x < 0 ? -1n : 0n,
  is_zero: (x) => x == 0,
  is_odd: (x) => integer(x, "this") % 2n !== 0n,
  is_even: (x) => integer(x, "this") % 2n === 0n,
  to_float: (x) => Number(x),
  to_int: (x) => typeof x === "bigint" ? x : checked(BigInt(Math.trunc(x))),
  to_hex: (x) => BigInt.asUintN(64, integer(x, "this")).toString(16),
  to_octal: (x) => BigInt.asUintN(64, integer(x, "this")).toString(8),
  to_binary: (x) => BigInt.asUintN(64, integer(x, "this")).toString(2),
  floor: (x) => typeof x === "bigint" ? x : Math.floor(x),
  ceiling: (x) => typeof x === "bigint" ? x : Math.ceil(x),
  round: (x) => typeof x === "bigint" ? x : Math.sign(x) * Math.round(Math.abs(x)),
  int: (x) => typeof x === "bigint" ? x : Math.trunc(x),
  fraction: (x) => typeof x === "bigint" ? 0n : x - Math.trunc(x),
  is_nan: (x) => Number.isNaN(x),
  is_finite: (x) => true,
  is_infinite: (x) => false,
  sqrt: asFloat(Math.sqrt), exp: asFloat(Math.exp), ln: asFloat(Math.log),
  log: (x, base) => finite(base === undefined ? Math.log10(Number(x)) : Math.log(Number(x)) / Math.log(Number(base))),
  sin: asFloat(Math.sin), cos: asFloat(Math.cos), tan: asFloat(Math.tan), asin: asFloat(Math.asin), acos: asFloat(Math.acos), atan: asFloat(Math.atan),
  to_degrees: asFloat((x) => x * 180 / Math.PI), to_radians: asFloat((x) => x * Math.PI / 180),
  hypot: (x, y) => finite(Math.hypot(Number(x), Number(y))),
};
ofNumbers.int_part = ofNumbers.int;

const ofRanges = {
  start: (r) => r.start,
  end: (r) => r.end,
  contains: (r, x) => contains(r, x),
  is_empty: (r) => r.start >= r.end,
};

const ofAll = {
  type_of: typeName,
  to_string: (v) => show(v),
  to_debug: (v) => show(v, true),
  min: (a, b) => typeof a === "bigint" && typeof b === "bigint" || !isNumber(a) ? (orderOf(b, a) < 0 ? b : a) : orderOf(b, a) < 0 ? Number(b) : Number(a),
  max: (a, b) => typeof a === "bigint" && typeof b === "bigint" || !isNumber(a) ? (orderOf(b, a) > 0 ? b : a) : orderOf(b, a) > 0 ? Number(b) : Number(a),
};

function methodsOf(v) {
  switch (typeof v) {
  case "string": return ofStrings;
  case "bigint": case "number": return ofNumbers;
  case "object": return Array.isArray(v) ? ofArrays : v instanceof Map ? ofMaps : ofRanges;
  }
  return ofAll;
}

function own(table, name) { return Object.prototype.hasOwnProperty.call(table, name) ? table[name] : undefined; }

// call calls a method, or a function with of as this. What is assigned to this stays in a map only.
function call(of, name, args) {
  if (typeof name === "function") {
    const result = name.apply(of, args), now = name.rebinds ? rebound() : of;
    if (now !== of) {
      if (!(of instanceof Map) || !(now instanceof Map)) raise("this cannot be assigned to here");
      of.clear();
      now.forEach((v, k) => { of.set(k, v); });
    }
    return result;
  }
  const method = own(methodsOf(of), name) || own(ofAll, name);
  if (method !== undefined) return method(of, ...args);
  if (of instanceof Map) {
    const f = get(of, name);
    if (typeof f === "function") return call(of, f, args);
  }
  return raise("there is no function " + name + " for " + typeName(of));
}

const globals = {
  print: () => undefined,
  debug: () => undefined,
  PI: () => Math.PI,
  E: () => Math.E,
  range: (start, end, step) => {
    if (step === undefined || step === 1n) return range(start, end, false);
    if (integer(step, "the step of a range") === 0n) raise("the step of a range must not be zero");
    const list = [];
    for (let i = integer(start, "the start of a range"); step > 0n ? i < integer(end, "the end of a range") : i > end; i += step) { work(1); list.push(i); }
    return list;
  },
};

function fn(name, args) {
  const f = own(globals, name);
  if (f !== undefined) return f(...args);
  if (args.length === 0) unknown("function " + name);
  return call(args[0], name, args.slice(1));
}

// JSON.

function json(v, depth) {
  if (depth > 128) raise("a value is nested too deeply for a document");
  switch (typeof v) {
  case "undefined": return "null";
  case "boolean": case "bigint": return String(v);
  case "number": return host.float(finite(v));
  case "string": return quoted(v);
  case "object":
    if (Array.isArray(v)) { work(v.length + 4); return "[" + joined(v.map((x) => json(x, depth + 1)), ",") + "]"; }
    if (v instanceof Map) return "{" + joined(entries(openAll(v), (k, x) => quoted(k) + ":" + json(x, depth + 1)), ",") + "}";
  }
  return raise("a " + typeName(v) + " cannot be stored in a document");
}

// run calls main, what translate made of a script, on the document with these names of fields.
function run(main, names, hasContext, operations) {
  left = until = operations; line = 0; mutated = undefined; origin = new Map();
  const doc = new Map();
  names.forEach((name, i) => doc.set(name, new Raw(i)));
  return finish(main(doc, hasContext ? parse(-1) : undefined));
}

// finish lists the fields of a document: its names, each with the place of the field that
// stayed as it was, or with the JSON text of its value. () gives undefined.
function finish(doc) {
  if (doc === undefined) return undefined;
  if (!(doc instanceof Map)) raise("doc must be a map, or () to remove the document; it is " + typeName(doc));
  const out = [];
  doc.forEach((v, k) => {
    if (v instanceof Raw) { out.push(k, v.place); return; }
    const was = origin.get(k);
    out.push(k, was !== undefined && was.value === v ? was.place : json(v, 1));
  });
  return out;
}

// failure tells what stopped the script; undefined when it is no fault of the script.
function failure(e) { return e instanceof Failure ? show(e.value) : undefined; }
function lineOf() { return line; }

return {
  t, bool, copy, text, array, map, range, get, put, getAt, putAt, call, changed, rebinding, rebound, invoke, curry, fn, unknown, constant, raise, caught, iterate, END,
  matches, contains, addTo, neg, pos, not, add, sub, mul, div, rem, pow, shl, shr, and, or, xor, same, differ, less, lessEqual, more, moreEqual,
  run, failure, lineOf,
};
})
