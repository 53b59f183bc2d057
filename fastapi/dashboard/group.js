// The group: which servers belong to it, how far behind they are, and which one takes writes.
import {ask} from "./api.js";
import {again, brief, count, h, redraw, say} from "./dom.js";

const roles = {writer: "takes writes", reader: "answers reads", voter: "votes"};

/** describe returns what is said of this server, in pairs. */
function describe(g) {
  const own = g.reader ?? g.voter ?? {}, stale = own.stalenessSeconds, pairs = [["Group", g.name || "none: its data are published"], ["This server", g.voter?.leads ? "leads the group" : roles[g.role] ?? g.role]];
  if (g.reader) pairs.push(["Follows", g.reader.writer], ["Data", g.reader.answersReads ? "are open" : "are being copied: requests are forwarded"]);
  if (g.voter) pairs.push(["Leader", g.voter.leader || "none: writes wait until one is elected"]);
  pairs.push(["Term", count(g.term)], ["Position", g.position]);
  if (g.role !== "writer") pairs.push(["Up to date", stale === null || stale === undefined ? "not known" : stale < 1 ? "now" : `${count(Math.round(stale))} seconds ago`]);
  if (g.log) pairs.push(["Removed files that readers still need", count(g.log.filesHeld)]);
  const problem = own.problem ?? g.log?.problem;
  if (problem) pairs.push(["Problem", brief(problem, 500)]);
  return pairs;
}

/** rows returns the members of the group that this server knows, with itself. */
function rows(g) {
  const others = (g.members ?? []).map(m => g.voter ? {...m, role: m.role ?? (m.votes ? "voter" : "joins"), lagSeconds: undefined} : {...m, role: "reader"});
  if (g.role === "writer") return [{member: g.member, role: "writer", state: "leads", position: g.position, lagEntries: 0, lagSeconds: 0, address: ""}, ...others];
  if (g.role === "reader") return [{member: g.member, role: "reader", state: g.reader.state, position: g.position, lagEntries: g.reader.lagEntries, address: ""}, ...others];
  return others;
}

const good = ["leads", "follows"];

/** promote makes this reader the writer. If the writer cannot be asked, people decide whether its last writes may be lost. */
async function promote(force) {
  try {
    await ask("/group/promote", {body: {force}});
  } catch (error) {
    if (error.code !== "writer_unreachable" || force) throw error;
    if (!confirm("The writer does not answer. If it is gone, this reader can take its place, but writes that it has not received are lost. Promote it anyway?")) return false;
    return promote(true);
  }
  return true;
}

/** known names a member for people: by its address, or by the beginning of its id. */
const known = m => m.address || m.member.slice(0, 8);

/** acts are the buttons for a member of a group of voters. after is called once the server has accepted the request. */
function acts(g, m, after) {
  const leads = m.state === "leads", act = (text, kind, f) => h("button", {type: "button", class: kind, "data-at": text + m.member, "aria-label": `${text} ${known(m)}`, onclick: f}, text);
  return [m.votes && !leads && act("Transfer lead", "link", async () => {
    if (!confirm(`Hand the lead over to ${known(m)}? Writes wait until it leads, usually for less than a second.`)) return;
    await ask("/group/transfer", {body: {member: m.member}});
    await after(`The lead is being handed over to ${known(m)}.`);
  }), !leads && m.role !== "reader" && act("Remove", "link danger", async () => {
    if (!confirm(`Remove ${known(m)} from the group? The others go on without its copy of the data. To return, it has to join as a new member.`)) return;
    await ask("/group/members/" + encodeURIComponent(m.member), {method: "DELETE"});
    await after(`${known(m)} was removed from the group. Stop its server.`);
  })].filter(Boolean);
}

export async function groupView(box, signal) {
  let shown = "";

  const after = async text => {
    say(text);
    await draw();
  };

  async function draw() {
    const g = await ask("/group", {signal}), now = JSON.stringify({...g, members: g.members?.map(({seenAt: _, ...m}) => m)});
    if (signal.aborted || now === shown) return;
    shown = now;
    const about = h("p", {class: "about"}, "One server of a group takes writes. The others hold a copy of its data, follow each change and answer reads. See ", h("a", {href: "/docs/GROUP"}, "Groups"), ".");
    if (g.role === "alone") return redraw(box, [about, h("p", {class: "empty"}, "This server belongs to no group. Start it with --group-name and --group-addr to make it a writer.")]);
    redraw(box, [about, h("dl", {class: "numbers"}, describe(g).map(([name, value]) => [h("dt", null, name), h("dd", {dir: "auto"}, value)])),
      g.reader?.answersReads && h("p", {class: "bar"}, h("button", {type: "button", class: "danger", "data-at": "promote", onclick: async () => {
        if (!confirm("Make this reader the writer of the group? The writer stops; start it again as a reader.")) return;
        if (!await promote(false)) return;
        await draw();
        say("This server is the writer of the group now.");
      }}, "Promote this reader")),
      h("h2", null, "Members"),
      g.voter && !g.voter.leads && h("p", {class: "about"}, "Only the leader knows how far the other voters are behind. Open its page to see that."),
      h("div", {class: "scroll", tabIndex: 0}, h("table", null, h("thead", null, h("tr", null, ["Member", "Role", "State", "Position", "Changes behind", "Seconds behind", "Address"].map((t, i) => h("th", {scope: "col", class: i > 3 && i < 6 && "number"}, t)), g.voter && h("td"))),
        h("tbody", null, rows(g).map(m => h("tr", null, h("td", {class: "name", title: m.member}, m.member.slice(0, 8) + (m.member === g.member ? " (this server)" : "")), h("td", null, m.role),
          h("td", null, h("span", {class: good.includes(m.state) ? "status succeeded" : m.state === "away" ? "status failed" : "status"}, m.state)), h("td", null, m.position),
          h("td", {class: "number"}, m.lagEntries === null || m.lagEntries === undefined ? "not known" : count(m.lagEntries)), h("td", {class: "number"}, m.lagSeconds === undefined ? "" : m.lagSeconds.toFixed(1)),
          h("td", {class: "long", dir: "ltr"}, m.address), g.voter && h("td", null, acts(g, m, after))))))),
    ].filter(Boolean));
  }

  await draw();
  again(draw, 2000, signal);
}
