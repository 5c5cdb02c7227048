/** A worker that takes no data. */
setInterval(() => undefined, 1000);
