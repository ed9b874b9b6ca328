/** What the sidecar relies on, with real Envoy: what it says about a request, and that it denies without its authorizer. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { type Envoy, envoyProblem, startEnvoy } from "../support/envoy.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { NetnsArea, type TestNetns } from "../support/netns.ts";
import { type RecordingAuthorizer, startRecordingAuthorizer } from "../support/recording-authorizer.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const PRINCIPAL = "spiffe://cluster.local/ns/shop/sa/frontend";
const [PLAIN, MUTUAL_TLS, TCP, WITHOUT_AUTHORIZER] = [8080, 8443, 9000, 8090];
const APPLICATION = 80;
const upstream = { address: "127.0.0.1", port: APPLICATION };

const problems = [root, program("ip"), program("curl"), program("openssl"), envoyProblem()];
const testEnvoy = testNeeding(...problems);

describe("Envoy asks its authorizer", () => {
  const area = new NetnsArea("envoy");
  const undo = new AsyncDisposableStack();
  let netns: TestNetns;
  let authorizer: RecordingAuthorizer;
  let envoy: Envoy;
  let folder: string;

  beforeAll(async () => {
    if (problems.some((problem) => problem !== undefined)) return;
    area.sweep();
    netns = area.create();
    undo.defer(() => area.sweep());
    const directory = temporaryDirectory("envoy");
    undo.defer(directory.remove);
    folder = directory.path;
    const authority = makeRoot(folder, "authority");
    makeSigned(folder, "client", authority, { names: [`URI:${PRINCIPAL}`] });
    const mutualTls = { ...makeSigned(folder, "server", authority), authority: authority.cert };
    const http = insideNetns(netns.path, () =>
      Bun.serve({ hostname: "127.0.0.1", port: APPLICATION, fetch: ({ url }) => new Response(`app ${url}`) }),
    );
    undo.defer(() => http.stop(true));
    const socket = join(folder, "authorization.sock");
    const allows = ({ path, method }: { path: string; method: string }) => !path.startsWith("/denied") && method !== "";
    authorizer = undo.use(await startRecordingAuthorizer(socket, allows));
    const listeners = [
      { kind: "http", port: PLAIN, upstream },
      { kind: "http", port: MUTUAL_TLS, upstream, mutualTls },
      { kind: "tcp", port: TCP, upstream },
    ] as const;
    envoy = await startEnvoy({ netns: netns.path, directory: folder, authorizer: socket, listeners });
    undo.defer(envoy.stop);
  });
  afterAll(() => undo.disposeAsync());

  /** The status of the response; "000" without one. */
  const status = async (...args: readonly string[]) => {
    const command = ["curl", "-s", "--path-as-is", "-o", "/dev/null", "-w", "%{http_code}", "-m", "5", ...args];
    return await new Response(Bun.spawn(["nsenter", `--net=${netns.path}`, ...command]).stdout).text();
  };

  testEnvoy("with the address of the connection, never with the one in X-Forwarded-For", async () => {
    expect(await status("-H", "x-forwarded-for: 10.0.0.1", `http://127.0.0.1:${PLAIN}/allowed`)).toBe("200");

    const expected = { source: "127.0.0.1", principal: "", destinationPort: PLAIN, method: "GET", path: "/allowed" };
    expect(authorizer.asked.at(-1)).toEqual(expected);
  });

  testEnvoy("with method and path as the client sent them, and answers 403 if it is denied", async () => {
    expect(await status("-X", "DELETE", `http://127.0.0.1:${PLAIN}/denied/../%61//b?c=d`)).toBe("403");

    expect(authorizer.asked.at(-1)).toMatchObject({ method: "DELETE", path: "/denied/../%61//b?c=d" });
  });

  testEnvoy("with the SPIFFE name of the client's certificate, without which there is no connection", async () => {
    const own = ["--cert", join(folder, "client.crt"), "--key", join(folder, "client.key")];
    const address = `https://127.0.0.1:${MUTUAL_TLS}/`;

    expect(await status("--cacert", join(folder, "authority.crt"), ...own, address)).toBe("200");
    expect(authorizer.asked.at(-1)).toMatchObject({ principal: PRINCIPAL, destinationPort: MUTUAL_TLS });
    expect(await status("--cacert", join(folder, "authority.crt"), address)).toBe("000");
  });

  testEnvoy(
    "about a TCP connection without method and path when the client sends, and closes it if it is denied",
    async () => {
      expect(await status(`http://127.0.0.1:${TCP}/allowed`)).toBe("000");

      expect(authorizer.asked.at(-1)).toMatchObject({
        source: "127.0.0.1",
        destinationPort: TCP,
        method: "",
        path: "",
      });
    },
  );

  testEnvoy("and denies if there is no authorizer", async () => {
    const directory = temporaryDirectory("envoy");
    const listeners = [{ kind: "http", port: WITHOUT_AUTHORIZER, upstream }] as const;
    const alone = await startEnvoy({
      netns: netns.path,
      directory: directory.path,
      authorizer: join(directory.path, "nobody.sock"),
      listeners,
    });
    try {
      expect(await status(`http://127.0.0.1:${WITHOUT_AUTHORIZER}/allowed`)).toBe("403");
      expect(await alone.statistic(`http.http_${WITHOUT_AUTHORIZER}.downstream_rq_total`)).toBe(1);
    } finally {
      await alone.stop();
      directory.remove();
    }
  });
});
