// Loads the page again if one of its modules does not arrive, as when the network changes meanwhile: without all of them none runs.
addEventListener("error", ({target}) => target instanceof HTMLScriptElement && setTimeout(() => location.reload(), 1000), true);
