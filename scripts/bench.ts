/** Runs `bench/<name>.bench.ts`, or all of them: `make bench`, `make bench BENCH=startup`. */
import { Glob } from "bun";
import { installPrograms } from "./programs/install.ts";

const wanted = process.argv.slice(2);
const files = [...new Glob("bench/*.bench.ts").scanSync(".")].sort();
const chosen = files.filter((file) => wanted.length === 0 || wanted.some((name) => file.includes(`/${name}.`)));
if (chosen.length === 0) {
  console.error(`No benchmark is named "${wanted.join(", ")}"; available: ${files.join(", ")}`);
  process.exit(2);
}
await installPrograms();
for (const file of chosen) {
  const code = await Bun.spawn([process.execPath, file], { stdin: "ignore", stdout: "inherit", stderr: "inherit" })
    .exited;
  if (code !== 0) process.exit(code);
}
