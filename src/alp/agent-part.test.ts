import { afterAll, describe, expect, test } from "bun:test";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { identity } from "../identity.ts";
import { KUBELET_DIRECTORY, NO_KUBELET } from "../model/kubelet-directory.ts";
import { applicationLayerPolicy } from "./agent-part.ts";

const directory = temporaryDirectory("agent-part");
afterAll(() => directory.remove());

function partsWith(kubelet: string) {
  const said: string[] = [];
  const environment = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory.path, [KUBELET_DIRECTORY]: kubelet };
  const { parts } = applicationLayerPolicy.start({ environment, say: (message) => said.push(message) }, async () => {});
  return { parts: parts.map(({ name }) => name), said };
}

describe("applicationLayerPolicy", () => {
  test("the agent supervises the driver of its volumes, and looks for sidecars of earlier releases", () => {
    expect(partsWith(`${directory.path}/kubelet`)).toEqual({
      parts: ["the CSI driver", "sidecars of earlier releases"],
      said: [],
    });
  });

  test("without a directory of the kubelet there are no volumes", () => {
    expect(partsWith(NO_KUBELET)).toEqual({ parts: ["sidecars of earlier releases"], said: [] });
  });
});
