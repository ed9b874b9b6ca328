import { afterEach, describe, expect, test } from "bun:test";
import { render } from "preact-render-to-string";
import { session } from "../session-state.ts";
import { decidingWords } from "./flow-detail.tsx";
import { Draft, FlowDraft } from "./flow-draft.tsx";
import { FlowPath } from "./flow-path.tsx";
import { Reasoning } from "./reasoning.tsx";
import { sampleFlow } from "./sample-flow.ts";

const textOf = (html: string) =>
  html
    .replace(/<svg.*?<\/svg>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&quot;/g, '"')
    .replace(/\s+/g, " ");

afterEach(() => {
  session.value = undefined;
});

describe("the details of a flow", () => {
  test("name the deciding rule in words", () => {
    expect(decidingWords(sampleFlow())).toBe('Denied by NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])');
    expect(decidingWords(sampleFlow({ verdict: "unknown", decisions: [] }))).toStartWith("Not known");
    expect(decidingWords(sampleFlow({ decisions: [{ point: "workload ingress", verdict: "deny" }] }))).toBe(
      "Denied by a rule that you may not see",
    );
  });

  test("show both nodes, also the one that has no record", () => {
    const text = textOf(render(<FlowPath flow={sampleFlow()} partner={undefined} />));

    expect(text).toMatch(
      /from .*shop\/ web-1 .*app=web .*node-1 has no record .*node-2 .*workload ingress: deny .*to .*db-0/,
    );
  });

  test("offer nothing to copy or to apply if no policy has to be written", () => {
    const command = "vendorctl policy draft --flow f";
    const shown = (verdict: "allowed" | "denied" | "depends", yaml: string) =>
      render(
        <Draft
          draft={{ yaml, notes: ["why it is so"], verdict, command }}
          refusal={undefined}
          isBusy={false}
          apply={async () => {}}
        />,
      );

    expect(textOf(shown("allowed", ""))).toMatch(/No policy to write .*allowed now.* why it is so/);
    expect(textOf(shown("denied", ""))).toContain("No policy was found that allows it");
    expect(textOf(shown("depends", ""))).toContain("is not certain");
    expect(shown("allowed", "")).not.toMatch(/<pre|<button|<code/);
    expect(shown("allowed", "kind: NetworkPolicy")).toMatch(/<pre.*<button.*<code/);
  });

  test("show the reasoning of each side", () => {
    const explanation = {
      flow: sampleFlow(),
      sides: [
        {
          ...{ direction: "ingress" as const, of: "pod shop/db-0", verdict: "denied", reason: "no rule matches" },
          policies: [{ title: "NetworkPolicy shop/db", tier: "default", outcome: "no match" }],
        },
      ],
      missing: ["the endpoint is not kept any more"],
    };

    const text = textOf(render(<Reasoning explanation={explanation} />));
    expect(text).toMatch(
      /Ingress of pod shop\/db-0 .*denied .*no rule matches .*NetworkPolicy shop\/db .*not kept any more/,
    );
  });

  test("nothing of a record becomes markup", () => {
    const { source } = sampleFlow();
    const html = render(
      <FlowPath flow={sampleFlow({ source: { ...source, name: "<img src=x>" } })} partner={undefined} />,
    );

    expect(html).not.toContain("<img");
    expect(html).toContain("&lt;img");
  });

  test("a draft is asked for, not drawn at once", () => {
    expect(textOf(render(<FlowDraft id="a" flow={sampleFlow()} />))).toContain("Draft a policy that allows it");
  });
});
