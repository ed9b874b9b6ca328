/**
 * One end of an HTTP transfer, run inside a pod's network:
 *   serve BYTES          serves that many bytes on port 80 until it is killed; says "ready"
 *   fetch URL            prints length and sum of what the URL gives, and how many milliseconds that took
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
