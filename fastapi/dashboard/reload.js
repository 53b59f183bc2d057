// Reloads the page if one of its modules fails to load, for example because the network changed: then none of them runs.
addEventListener("error", ({target}) => target instanceof HTMLScriptElement && setTimeout(() => location.reload(), 1000), true);
