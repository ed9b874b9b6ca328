/** What others on the host may do to the agent and to its callers: nothing is read, held up or used up. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { SERVER_ALONE, SOCKET, startAgent } from "./agent.ts";

const test = testNeeding(hostProblem());

describe("the node agent beside hostile processes", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  test("makes directories that no other user may write to, whatever the umask", async () => {
    await site.host.must(["rm", "-rf", dirname(dirname(SOCKET))]);
    const agent = await startAgent(site.host, { under: ["sh", "-c", 'umask 0; exec "$@"', "sh"] });
    const modeOf = (path: string) => statSync(site.host.view(path)).mode & 0o777;

    expect([modeOf(dirname(SOCKET)), modeOf(dirname(dirname(SOCKET)))]).toEqual([0o700, 0o755]);
    await agent.signal("TERM");
    await agent.ended;
  });

  testNeeding(hostProblem(), program("setpriv"))("is not replaced by a listener of another user", async () => {
    const folder = dirname(SOCKET);
    await site.host.must(["sh", "-c", `mkdir -p ${folder}; rm -f ${SOCKET}; chmod 777 ${folder} ${dirname(folder)}`]);
    site.host.writeFile(
      `${site.host.directory}/fake.ts`,
      `import { appendFileSync } from "node:fs";
       Bun.listen({ unix: "${SOCKET}", socket: { data: (_, bytes) => appendFileSync("/tmp/fake-${process.pid}", bytes), open() {} } });
       console.log("listens");`,
    );
    const fake = site.host.start(
      ["setpriv", "--reuid=65534", "--clear-groups", process.execPath, `${site.host.directory}/fake.ts`],
      "fake.log",
    );
    const log = () => readFileSync(site.host.view(`${site.host.directory}/fake.log`), "utf8");
    await pollUntil(() => log().includes("listens"), "the fake agent");

    const pod = await site.makePod();
    await site.add(pod, { environment: { [`${identity.environmentPrefix}TEST`]: "secret" } });
    await site.quietly("DEL", pod);
    expect((await site.host.run(["cat", `/tmp/fake-${process.pid}`])).stdout).toBe("");
    fake.kill();
    await site.host.must(["sh", "-c", `rm -f ${SOCKET} /tmp/fake-${process.pid}; chmod 755 ${dirname(folder)}`]);
  });

  test("neither spins nor stops serving when connections use up its descriptors", async () => {
    const agent = await startAgent(site.host, { args: SERVER_ALONE, under: ["prlimit", "--nofile=64:64"] });
    const idle: Socket[] = [];
    const path = site.host.view(SOCKET);
    for (let count = 0; count < 100; count++) idle.push(connect({ path }).on("error", () => {}));
    await Bun.sleep(200);
    const before = processorTicks(site, agent.pid);
    await Bun.sleep(1_000);
    const spent = processorTicks(site, agent.pid) - before;
    for (const socket of idle) socket.destroy();

    // A hundred ticks are a second of one core.
    expect(spent).toBeLessThan(50);
    const pod = await site.makePod();
    await site.add(pod);
    await site.quietly("DEL", pod);
    expect((await agent.hasServed(2)).length).toBe(2);
    await agent.signal("TERM");
    await agent.ended;
  });
});

/** User and system time of a process of the private host. */
function processorTicks(site: PluginSite, pid: number): number {
  const fields =
    readFileSync(site.host.view(`/proc/${pid}/stat`), "utf8")
      .split(") ")[1]
      ?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
