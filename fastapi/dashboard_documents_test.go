package fastapi

import (
	"fmt"
	"strings"
	"testing"
)

// chooses makes a page put a file into its first file input.
const chooses = `
	window.choose = file => {
		const files = new DataTransfer(), input = document.querySelector("main input[type=file]");
		files.items.add(file);
		input.files = files.files;
		input.dispatchEvent(new Event("change"));
	};
	window.packed = async text => new Blob([await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer()]);`

// TestDashboardFromNothing uploads a gzipped CSV file to an empty server and makes a field filterable and sortable. Then it sorts, edits,
// deletes and exports documents in a table.
func TestDashboardFromNothing(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{PayloadLimit: 10 << 20})
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + chooses + `
		window.confirm = () => true;
		const link = URL.createObjectURL;
		URL.createObjectURL = blob => (blob.text().then(text => window.exported = text), link.call(URL, blob));`}, nil)
	axe := axe(t)
	looks := func(what string) {
		t.Helper()
		for _, size := range [][2]int{{390, 844}, {1440, 900}} {
			tab.look(size[0], size[1], size[0] == 390)
			for _, line := range append(tab.faults(), tab.complaints(axe)...) {
				t.Errorf("%s, %d pixels: %s", what, size[0], line)
			}
		}
	}
	tab.look(1440, 900, false)
	tab.goTo(url + "/#/search")
	tab.until(`document.querySelector(".steps input[type=file]")`)
	tab.eval(`choose(new File([new Uint8Array([0, 1, 2, 3])], "picture.json"))`, nil)
	tab.until(`document.getElementById("said").textContent.includes("not a text file")`)
	tab.eval(`choose(new File([""], "nothing.json"))`, nil)
	tab.until(`document.getElementById("said").textContent.includes("empty")`)

	csv := "Product Id;title;price:number;note\n"
	for i := range 30 {
		csv += fmt.Sprintf("p%02d;boots %d;%d;\"line 1\nline 2; \"\"%d\"\"\"\n", i, i, 100-i, i)
	}
	tab.eval(`packed(`+quoted(csv)+`).then(blob => choose(new File([blob], "My Goods.csv.gz"))), 0`, nil)
	tab.until(`document.querySelector(".plan tbody tr")`)
	tab.until(`texts(".plan tbody td.name").join() === "Product Id,title,price,note" && document.querySelector(".plan input").value === "my-goods" && document.querySelector(".plan select").value === "Product Id"`)
	looks("the plan of an upload")
	tab.look(1440, 900, false)
	tab.eval(`(() => {
		document.querySelector("input[aria-label='filter by price']").click();
		document.querySelector("input[aria-label='sort by price']").click();
		press("Upload", document.querySelector(".plan"));
	})()`, nil)
	tab.until(`document.querySelectorAll(".hit").length === 20 && document.querySelector(".facet")`)
	if r := c.get("/indexes/my-goods/documents/p07"); r.body != `{"Product Id":"p07","title":"boots 7","price":93,"note":"line 1\nline 2; \"7\""}` {
		t.Error(r.body)
	}
	if r := c.get("/indexes/my-goods/settings"); !strings.Contains(r.body, `"filterableAttributes":["price"],"sortableAttributes":["price"]`) {
		t.Error(r.body)
	}

	tab.goTo(url + "/#/documents?index=my-goods&view=table")
	tab.until(`document.querySelectorAll("tbody input[aria-label^=Select]").length === 20`)
	tab.eval(`press("price"), 0`, nil)
	tab.until(`document.querySelector(".grid tbody td:nth-child(2)").textContent === "p29" && document.activeElement.textContent.startsWith("price")`)
	tab.eval(`[...document.querySelectorAll(".grid tbody input")].slice(0, 2).forEach(box => box.click())`, nil)
	tab.until(`main.textContent.includes("2 selected")`)
	looks("a table of documents")
	tab.look(1440, 900, false)
	tab.eval(`press("Edit these"), type(document.querySelector("dialog input"), "stock.paris"), type(document.querySelectorAll("dialog input")[1], "12345678901234567890"), press("Change", document.querySelector("dialog")), 0`, nil)
	tab.until(`document.getElementById("said").textContent === "Done: 2 changed."`)
	if r := c.get("/indexes/my-goods/documents/p28"); !strings.Contains(r.body, `"stock":{"paris":12345678901234567890}`) {
		t.Error(r.body)
	}
	tab.eval(`press("Delete these"), 0`, nil)
	tab.until(`document.getElementById("said").textContent === "Done: 2 deleted." && document.querySelector(".grid tbody td:nth-child(2)").textContent === "p27"`)
	tab.eval(`(() => {
		document.querySelectorAll("main details").forEach(node => node.open = true);
		document.querySelector("input[aria-label='Show the column note']").click();
	})()`, nil)
	tab.until(`!texts(".grid th").includes("note")`)
	for name, want := range map[string]string{
		"NDJSON": `{"Product Id":"p00","title":"boots 0","price":100,"note":"line 1\nline 2; \"0\""}` + "\n",
		"CSV":    "Product Id,note,price,title\np00,\"line 1\nline 2; \"\"0\"\"\",100,boots 0\n", "JSON": "[\n" + `{"Product Id":"p00",`,
	} {
		tab.eval(`exported = "", press("Export"), press("as `+name+`"), 0`, nil)
		tab.until(`exported.startsWith(` + quoted(want) + `) && document.getElementById("said").textContent === "28 documents were exported."`)
	}
}

// TestDashboardSendsPieces uploads a large file over a connection that breaks once: the page must resend the piece whose answer was lost,
// and every document must be indexed once.
func TestDashboardSendsPieces(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{PayloadLimit: 20 << 20})
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": presses + fills + chooses + `
		window.keys = [];
		const set = XMLHttpRequest.prototype.setRequestHeader, send = XMLHttpRequest.prototype.send;
		XMLHttpRequest.prototype.setRequestHeader = function(name, value) {
			if (name === "Idempotency-Key") this.nonce = value;
			set.call(this, name, value);
		};
		XMLHttpRequest.prototype.send = function(body) {
			keys.push(this.nonce);
			if (keys.length === 2) this.onload = () => this.onerror(); // the server has the piece, but its answer is lost
			send.call(this, body);
		};`}, nil)
	tab.goTo(url + "/#/documents")
	tab.until(`document.querySelector("main input[type=file]")`)
	tab.eval(`(() => {
		const line = "y".repeat(10000), lines = [];
		for (let i = 0; i < 2000; i++) lines.push(i + ',"' + line + '\n,""' + i + '"""\n');
		choose(new File(["id,text\n", ...lines], "large.csv"));
	})()`, nil)
	tab.until(`document.querySelector(".plan tbody tr")`)
	tab.eval(`type(document.querySelector(".plan input"), "large"), press("Upload", document.querySelector(".plan")), 0`, nil)
	tab.until(`document.getElementById("said").textContent === "2,000 documents were indexed."`)
	var keys []string
	if tab.eval("keys", &keys); len(keys) != 3 || keys[0] == keys[1] || keys[1] != keys[2] {
		t.Errorf("the pieces have the keys %q", keys)
	}
	if r := c.get("/tasks?limit=1"); !strings.Contains(r.body, `"total":2`) {
		t.Errorf("the tasks: %.300s", r.body)
	}
	if r := c.get("/indexes/large/documents/1999"); !strings.HasSuffix(r.body, `y\n,\"1999\""}`) {
		t.Errorf("%.200s", r.body[max(0, len(r.body)-100):])
	}
}

// TestDashboardTypesColumns uploads CSV files: columns of numbers become numbers, unless people choose text, with each delimiter and in
// files of several pieces. A file without the ids of the index that is shown goes into an index of its own.
func TestDashboardTypesColumns(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{PayloadLimit: 20 << 20})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "metropolis"}]`))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": presses + fills + chooses}, nil)
	upload := func(name, file string, types ...string) {
		t.Helper()
		tab.goTo(url + "/?" + name + "#/documents?index=films")
		tab.until(`document.querySelector("main input[type=file]") && document.querySelector(".hit")`)
		tab.eval(`document.querySelector("main input[type=file]").closest("details").open = true, choose(`+file+`), 0`, nil)
		tab.until(`document.querySelector(".plan input")?.value === ` + quoted(name) + ` && [...document.querySelectorAll(".plan td select")].map(node => node.value).join() === ` + quoted(strings.Join(types, ",")))
	}
	send := func() {
		t.Helper()
		tab.eval(`press("Upload", document.querySelector(".plan")), 0`, nil)
		tab.until(`/documents were indexed/.test(document.getElementById("said").textContent)`)
	}
	stored := func(path, want string) {
		t.Helper()
		if r := c.get("/indexes/" + path); r.body != want {
			t.Errorf("%s: %s, want %s", path, r.body, want)
		}
	}
	for i, delimiter := range []string{",", ";", "\t"} {
		name := fmt.Sprint("goods-", i)
		text := strings.ReplaceAll("sku|\"a price\"|zip|size:string|note\ns1|-9.5|01234|4|\ns2||56789|5|7 of 9\n", "|", delimiter)
		upload(name, `new File([`+quoted(text)+`], `+quoted(name+".csv")+`)`, "text", "number", "text", "text")
		send()
		stored(name+"/documents/s1", `{"sku":"s1","a price":-9.5,"zip":"01234","size":"4","note":null}`)
		stored(name+"/documents/s2", `{"sku":"s2","a price":null,"zip":"56789","size":"5","note":"7 of 9"}`)
	}
	upload("chosen", `new File(["sku,price\ns1,9\n"], "chosen.csv")`, "text", "number")
	tab.eval(`document.querySelectorAll(".plan td select")[1].value = "text", 0`, nil)
	send()
	stored("chosen/documents/s1", `{"sku":"s1","price":"9"}`)
	upload("films", `new File(["id,title,year\n2,sunrise,1927\n"], "more.csv")`, "number", "text", "number")
	send()
	stored("films/documents/2", `{"id":2,"title":"sunrise","year":1927}`)
	upload("large", `new File(["sku,n,text\n", ...Array.from({length: 2000}, (_, i) => "s" + i + "," + i + "," + "y".repeat(10000) + "\n")], "large.csv")`, "text", "number", "text")
	send()
	stored("large/documents/s1999?fields=n", `{"n":1999}`)
}
