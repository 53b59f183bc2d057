// The choice of an index, by those who may list them and those who may not.
import {ask} from "./api.js";
import {brief, count, h, select} from "./dom.js";

const most = 1000; // indexes that are listed

/** indexes lists the first indexes with how many documents each has; null when the key may not see them. */
export async function indexes(signal) {
  try {
    const listed = (await ask("/indexes?limit=" + most, {signal})).results;
    let sizes = {};
    try {
      sizes = (await ask("/stats", {signal})).indexes;
    } catch (error) {
      if (signal.aborted) throw error;
    }
    return listed.map(index => ({...index, documents: sizes[index.uid]?.numberOfDocuments, fields: sizes[index.uid]?.fieldDistribution ?? {}}));
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/**
 * chooser returns the control to choose an index. It calls onchange with the uid that was chosen. If all has an empty uid, none is its label.
 * If there may be more indexes than all has, people can also type the name.
 */
export function chooser(all, chosen, onchange, none) {
  if (all && all.length < most) {
    const named = all.map(index => [index.uid, brief(index.uid || none || "", 60) + (index.documents === undefined ? "" : ` (${count(index.documents)})`)]);
    return select(named, chosen, onchange, "Index");
  }
  return [h("input", {value: chosen, placeholder: "name of an index", "aria-label": "Index", spellcheck: false, autocomplete: "off", list: all && "indexes", onchange: event => onchange(event.target.value.trim())}),
    all && h("datalist", {id: "indexes"}, all.filter(index => index.uid).map(index => new Option(index.uid)))];
}
