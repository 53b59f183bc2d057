// CSV, read and written.

/**
 * fromCSV splits a text into records of values. Quotes around a value may hold delimiters, line breaks and doubled quotes. Empty lines are
 * left out. part says that the text is the beginning of a file: its last record may be incomplete, and is left out.
 */
export function fromCSV(text, delimiter, part) {
  const records = [];
  let record = [], value = "", quoted = false;
  const end = () => {
    record.push(value);
    if (record.some(Boolean)) records.push(record);
    record = [];
    value = "";
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') value += c;
      else if (text[i + 1] === '"') value += text[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === delimiter) {
      record.push(value);
      value = "";
    } else if (c === "\n") end();
    else if (c !== "\r" || text[i + 1] !== "\n") value += c;
  }
  if (part) return records;
  if (quoted) throw new Error(`A quotation mark of the CSV file is not closed. It is in record ${records.length + 1} or before it.`);
  end();
  return records;
}

/** toCSV writes records, with commas or another delimiter. */
export const toCSV = (records, delimiter = ",") => records.map(record => record.map(value => /[",;\t\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value).join(delimiter) + "\n").join("");

/** delimiterOf returns the delimiter of a text: the most frequent one of its first line among comma, semicolon and tab. */
export function delimiterOf(text) {
  const line = text.slice(0, (text + "\n").indexOf("\n")), frequency = c => line.split(c).length;
  return [",", ";", "\t"].reduce((best, c) => frequency(c) > frequency(best) ? c : best);
}

/** recordEnd returns where the last complete record of some bytes ends, or the first one. Line breaks between quotes end none. 0: none ends. */
export function recordEnd(bytes, first) {
  let end = 0, quoted = false;
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] === 34) quoted = !quoted; // a doubled quote changes it twice
    else if (bytes[i] === 10 && !quoted) {
      end = i + 1;
      if (first) break;
    }
  }
  return end;
}
