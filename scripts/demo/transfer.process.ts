/**
 * One end of an HTTP transfer, run inside a pod's network:
 *   serve BYTES          serves that many bytes on port 80 until it is killed; prints "ready"
 *   fetch URL            prints the length and the hash of the response, and the duration in milliseconds
 */
const [role, argument = ""] = process.argv.slice(2);

if (role === "serve") {
  const body = new Uint8Array(Number(argument)).map((_, index) => index % 251);
  Bun.serve({ hostname: "::", port: 80, fetch: () => new Response(body) });
  console.log("ready");
} else {
  const started = performance.now();
  const body = await (await fetch(argument)).bytes();
  console.log(`${body.length} ${Bun.hash(body)} ${(performance.now() - started).toFixed(1)}`);
}
