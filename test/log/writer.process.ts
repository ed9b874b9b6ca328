/** One of many processes that share a log file: `bun writer.process.ts <path> <name> <lines> <max bytes> <max count>`. */
import { openLog } from "../../src/log/log.ts";

const [path = "", name = "", lines = "0", maxBytes = "0", maxCount = "0"] = process.argv.slice(2);
const troubles: string[] = [];
const log = openLog(
  {
    level: "INFO",
    filePath: path,
    maxSizeMegabytes: Number(maxBytes) / 1048576,
    maxAgeDays: 1,
    maxCount: Number(maxCount),
  },
  {
    component: "writer",
    pid: process.pid,
    clock: () => new Date(),
    stderr: (text) => text.includes("[WARNING]") && troubles.push(text),
  },
);
for (let line = 0; line < Number(lines); line++)
  log.info(`line ${name}-${line} end`, { filling: "x".repeat(line % 97) });
process.stdout.write(troubles.join(""));
