/** `make demo` of this clone on a bare Debian with a random host name that was booted minutes ago: nothing it uses may be here by chance. */
import { describe, expect } from "bun:test";
import { hostname } from "node:os";
import { join } from "node:path";
import { bareMachineProblem, isBareMachine, startBareMachine } from "../../scripts/bare/machine.ts";
import { testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const REPOSITORY = join(import.meta.dir, "../..");
const problem = isBareMachine ? "is on a bare machine already" : await bareMachineProblem(REPOSITORY);
const LIMIT = 900_000;

describe("make demo on a bare machine", () => {
  testNeeding(problem)(
    "installs all that it needs, shows all its steps and cleans everything up",
    async () => {
      const folder = temporaryDirectory("bare");
      const machine = await startBareMachine({ folder: folder.path, repository: REPOSITORY, work: "demo" });
      const printed = await new Response(machine.stdout).text();
      const code = await machine.exited;
      folder.remove();

      expect({ code, printed }).toMatchObject({ code: 0 });
      expect(printed.match(/^ {2}✓/gm)).toHaveLength(22);
      expect(printed).toMatch(/^Everything was cleaned up: no link, .* is left/m);
      const [, name, uptime] = /^bare: host name (\S+), up for (\S+) seconds$/m.exec(printed) ?? [];
      expect(name).not.toBe(hostname());
      expect(Number(uptime)).toBeLessThan(3600);
    },
    LIMIT,
  );
});
