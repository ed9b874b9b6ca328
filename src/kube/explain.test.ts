import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeRoot, makeSigned } from "../../test/support/certificates.ts";
import { imitateApi, kubeconfigText, meansWith, withClient } from "../../test/support/imitated-api.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { requireOk } from "./require-ok.ts";

const directory = temporaryDirectory("explain");
const root = makeRoot(directory.path, "root");
const client = makeSigned(directory.path, "client", root);
afterAll(() => directory.remove());

const POD = { method: "GET", path: "/api/v1/namespaces/a/pods/b" } as const;
const LATER = new Date(Date.now() + 1000 * 24 * 60 * 60 * 1000);

async function kubeconfig(name: string, server: string, user: object, cluster: object): Promise<string> {
  const file = join(directory.path, name);
  await Bun.write(file, kubeconfigText(server, user, cluster));
  return file;
}

/** The failure of a request to a server with this certificate. */
async function failureWith(user: object, { server = client, roots = root.cert } = {}): Promise<string> {
  using api = imitateApi(() => new Response("{}"), server);
  const file = await kubeconfig("config", api.url, user, { "certificate-authority": roots });
  const failure = await rejectionOf(() => withClient({ kubeconfigs: [file] }, (opened) => opened.request(POD)));
  expect(failure).toMatchObject({ kind: "api-unavailable" });
  return failure.message;
}

/** The failure of a request that is refused with 401. */
async function refusalOf(user: object, now?: Date): Promise<string> {
  using api = imitateApi(() => new Response("{}", { status: 401 }));
  const file = await kubeconfig("refused", api.url, user, {});
  const failure = await rejectionOf(() =>
    withClient(
      { kubeconfigs: [file] },
      async (opened) => requireOk(await opened.request(POD), POD),
      meansWith(now === undefined ? {} : { now: () => now }),
    ),
  );
  return failure.message;
}

describe("explainFailure()", () => {
  test("an expired certificate of the server: its date", async () => {
    const expired = makeSigned(directory.path, "expired", root, { days: -1 });
    expect(await failureWith({}, { server: expired })).toMatch(
      /failed at stage "TLS": the server's certificate expired on 20\d\d-\d\d-\d\dT/,
    );
  });

  test("another root: the file of the certificate authority", async () => {
    const other = makeRoot(directory.path, "other");
    expect(await failureWith({}, { roots: other.cert })).toContain(
      `is not signed by the certificate authority "${other.cert}"`,
    );
  });

  test("a key that does not belong to the certificate: the file", async () => {
    const other = makeSigned(directory.path, "another", root);
    const message = await failureWith({ "client-certificate": client.cert, "client-key": other.key });
    expect(message).toContain(
      `stage "TLS": the client certificate "${client.cert}" cannot be used: the key does not belong`,
    );
  });

  test("a file that is not PEM: the file", async () => {
    const file = join(directory.path, "garbage");
    await Bun.write(file, "garbage");
    const message = await failureWith({ "client-certificate": file, "client-key": client.key });
    expect(message).toContain(`the client certificate "${file}" cannot be used`);
  });

  test("a CA file without a certificate: the file", async () => {
    const file = join(directory.path, "empty");
    await Bun.write(file, "");
    const path = await kubeconfig("config", "https://127.0.0.1:1", {}, { "certificate-authority": file });
    const failure = await rejectionOf(() => withClient({ kubeconfigs: [path] }, (opened) => opened.request(POD)));
    expect(failure).toMatchObject({ kind: "config-invalid" });
    expect(failure.message).toContain(`"${file}"`);
  });
});

describe("describeRefused()", () => {
  test("an expired client certificate: file and date", async () => {
    const user = { "client-certificate": client.cert, "client-key": client.key };
    expect(await refusalOf(user)).toContain(`does not accept the client certificate "${client.cert}" (401`);
    expect(await refusalOf(user, LATER)).toMatch(/client certificate "[^"]+", which expired on 20\d\d-\d\d-\d\dT/);
  });

  test("an expired token: file and date, and nothing of the token", async () => {
    const file = join(directory.path, "token");
    const claims = Buffer.from(JSON.stringify({ exp: 1_767_225_600 })).toString("base64url");
    await Bun.write(file, `eyJhbGciOiJSUzI1NiJ9.${claims}.hidden-word`);
    const message = await refusalOf({ tokenFile: file });
    expect(message).toContain(`token file "${file}", which expired on 2026-01-01T00:00:00.000Z`);
    expect(message).not.toContain(claims);
  });

  test("a token that is not a JSON web token", async () => {
    expect(await refusalOf({ token: "hidden-word" })).toContain('does not accept the token of user "u" of "');
  });
});
