/** Executes the commands of the README on a private host. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { program, root, testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const directory = temporaryDirectory("readme");
afterAll(() => directory.remove());

const page = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");
const section = page.slice(page.indexOf("## Five minutes"), page.indexOf("## Further"));
const [forAnybody = "", forRoot = ""] = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, script = ""]) =>
  // The build is there already, and /tmp is everybody's.
  script.replace(/^make .*$/gm, "").replaceAll("/tmp/", `${directory.path}/`),
);

function type(script: string, before: readonly string[] = []): { code: number; printed: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...before, "bash", "-c", script], {
    env: { PATH: process.env["PATH"] ?? "" },
    stdin: "ignore",
  });
  return { code: exitCode, printed: `${stdout}${stderr}` };
}

/** Its own network and /run; one address, so that a ping has a source address. */
const PRIVATE_HOST = `set -e
mount --make-rprivate / && mount -t tmpfs none /run
ip link set lo up && ip address add 192.0.2.1/32 dev lo
`;

describe("the quick start of the README", () => {
  test("starts without root: versions, an error, an invalid and a valid config", () => {
    const { code, printed } = type(forAnybody);

    expect(code).toBe(0);
    expect(printed).toContain('"supportedVersions"');
    expect(printed).toMatch(/"code":4.*\nexit code 1/);
    expect(printed).toMatch(/try\.conf:1:\d+: error: "log_level"/);
    expect(printed).toContain("try.conf: ok");
    expect(printed).toContain('"num_queues": 1');
  });

  testNeeding(
    root,
    program("ip"),
    program("ping"),
  )("ends with a container that responds", () => {
    const { code, printed } = type(`${PRIVATE_HOST}${forRoot}`, ["unshare", "--net", "--mount"]);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toContain('"address":"10.66.0.0/32"');
    expect(printed).toContain(" 1 received");
  });
});
