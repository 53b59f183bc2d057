package fastapi

import "testing"

// TestDashboardFindsTheServerAgain takes the server away from a page. It tells so, and goes on by itself once the server answers: a search
// that failed is repeated, and a part that could not be opened is opened.
func TestDashboardFindsTheServerAgain(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "metropolis"}, {"id": 2, "title": "sunrise"}]`))
	const down, up, lost = `window.there = fetch; window.fetch = async () => { throw new TypeError("down"); }; 0`, `window.fetch = there; 0`,
		`document.getElementById("said").textContent === "The server does not answer. Is it running?"`
	tab.goTo(url + "/#/search?index=films")
	tab.until(`document.querySelectorAll(".hit").length === 2`)
	tab.eval(down, nil)
	tab.eval(`(() => { const box = document.querySelector("input[type=search]"); box.value = "metropolis"; box.dispatchEvent(new Event("input")); })()`, nil)
	tab.until(lost + ` && !document.querySelector(".hit")`)
	tab.eval(up, nil)
	tab.until(`document.querySelectorAll(".hit").length === 1 && document.getElementById("said").textContent === ""`)
	tab.eval(down, nil)
	tab.eval(`location.hash = "#/settings?index=films"; 0`, nil)
	tab.until(lost + ` && !document.querySelector(".setting")`)
	tab.eval(up, nil)
	tab.until(`document.querySelector(".setting") && document.getElementById("said").textContent === ""`)
}

// TestDashboardSendsReadsAgain drops requests, as browsers do when the network changes. The page must send a request again that changes
// nothing. Others may have reached the server, so the page must report their failure.
func TestDashboardSendsReadsAgain(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "metropolis"}, {"id": 2, "title": "sunrise"}]`))
	tab.goTo(url + "/#/search?index=films")
	tab.until(`document.querySelectorAll(".hit").length === 2`)
	tab.eval(`(() => {
		const real = fetch;
		window.drop = "";
		window.failures = 0;
		new MutationObserver(() => failures += document.getElementById("said").textContent.includes("does not answer")).observe(document.getElementById("said"), {childList: true, characterData: true, subtree: true});
		window.fetch = async (path, options) => {
			if (drop === "" || !path.includes(drop)) return real(path, options);
			drop = "";
			throw new TypeError("network changed");
		};
	})()`, nil)
	tab.eval(`(() => { drop = "/search"; const box = document.querySelector("input[type=search]"); box.value = "metropolis"; box.dispatchEvent(new Event("input")); })()`, nil)
	tab.until(`drop === "" && document.querySelectorAll(".hit").length === 1`)
	tab.eval(`drop = "/settings", location.hash = "#/settings?index=films", 0`, nil)
	tab.until(`drop === "" && document.querySelector(".setting")`)
	tab.eval(`drop = "/experimental-features", location.hash = "#/system?view=features", 0`, nil)
	tab.until(`drop === "" && document.querySelector(".feature")`)
	tab.until(`failures === 0`)
	tab.eval(`drop = "/experimental-features", document.querySelector(".feature input").click(), 0`, nil)
	tab.until(`failures === 1`)
}

// TestDashboardSuggestsSearchesOfTheSample loads the sample and follows each suggestion: it finds something.
func TestDashboardSuggestsSearchesOfTheSample(t *testing.T) {
	tab := startChromium(t).open()
	_, url := openPage(t, Options{})
	tab.goTo(url + "/")
	tab.until(`document.querySelector(".steps button.main")?.textContent === "Load sample films"`)
	tab.eval(`document.querySelector(".steps button.main").click()`, nil)
	tab.until(`document.querySelectorAll(".try button").length === 3 && document.querySelector(".summary").textContent.startsWith("24 found") && !document.querySelector(".score")`)
	for i, mark := range []string{"city", "A tramp", "city"} {
		b := []string{"0", "1", "2"}[i]
		tab.eval(`document.querySelectorAll(".try button")[`+b+`].click()`, nil)
		tab.until(`document.querySelector("input[type=search]").value === document.querySelectorAll(".try button")[` + b + `].textContent &&
			location.hash.includes(new URLSearchParams({q: document.querySelectorAll(".try button")[` + b + `].textContent}).toString()) &&
			[...document.querySelectorAll(".hit mark")].map(m => m.textContent).join(" ").includes("` + mark + `") && document.querySelector(".score")`)
	}
}

// TestDashboardReloadsLostModules keeps a module from a page: once it can be loaded, the page must appear without a click.
func TestDashboardReloadsLostModules(t *testing.T) {
	tab := startChromium(t).open()
	_, url := openPage(t, Options{})
	tab.do("Network.enable", values{}, nil)
	tab.do("Network.setBlockedURLs", values{"urls": []string{"*/compare.js"}}, nil)
	tab.goTo(url + "/")
	tab.until(`performance.getEntriesByType("resource").some(e => e.name.endsWith("/compare.js")) && document.readyState === "complete"`)
	tab.until(`document.getElementById("main").innerText === "" && performance.now() > 300`)
	tab.do("Network.setBlockedURLs", values{"urls": []string{}}, nil)
	tab.until(`document.querySelector(".steps")`)
}

// TestDashboardSaysThatItLoads delays the answers of the server: the page must say that it loads, until there is content.
func TestDashboardSaysThatItLoads(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id":1,"title":"Metropolis"}]`))
	tab.goTo(url + "/#/tasks")
	tab.until(`document.querySelector("#main table") && !document.querySelector(".loading")`)
	tab.eval(`(() => {
		const real = window.fetch;
		window.fetch = async (...all) => {
			await new Promise(done => window.answerNow = done);
			window.fetch = real;
			return real(...all);
		};
		location.hash = "#/search";
	})()`, nil)
	tab.until(`document.querySelector(".loading") && getComputedStyle(document.querySelector(".loading")).visibility === "visible"`)
	tab.eval(`answerNow(), 0`, nil)
	tab.until(`document.querySelector(".hit") && !document.querySelector(".loading")`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
}
