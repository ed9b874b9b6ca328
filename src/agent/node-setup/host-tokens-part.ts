/**
 * The part of an agent that was installed by hand, with an account of its own, that renews the tokens of this host
 * (docs/kubernetes.md): what the kubelet does for the agent of a pod, and that agent for the plugin.
 *
 *   /etc/vendor/node-token     of the agent; it says the namespace, the account and the Node
 *   /etc/vendor/plugin-token   of the plugin, in the same namespace
 *
 * They are in files of their own, so that the kubeconfigs that name them stay as the administrator wrote them.
 */

import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { LONGEST_TOKEN_SECONDS } from "../../model/token-lifetime.ts";
import { quoted } from "../../quote.ts";
import type { AgentPart } from "../supervise.ts";
import { nodeUid, requestAccountToken, type TokenAccount } from "./account-token.ts";
import { keepToken, tokenInFile } from "./keep-plugin-access.ts";
import { boundAccount } from "./kubeconfig.ts";
import { type AccountMeans, partWithClient, renewalMeans } from "./pod-part.ts";
import { placesIn } from "./settings.ts";

const OWN_TOKEN = `${identity.configDirectory}/node-token`;
const PLUGIN_TOKEN = `${identity.configDirectory}/plugin-token`;

export function hostTokensPart(means: AccountMeans): AgentPart {
  const { pluginAccount } = placesIn(means.environment);
  return partWithClient("the tokens of this host", means, (client) => {
    const keep = (title: string, path: string, accountFor: (own: TokenAccount) => TokenAccount): AgentPart => ({
      name: title,
      run: (signal) =>
        keepToken(
          {
            title,
            ...tokenInFile(path),
            isInstalled: () => own.readToken() !== undefined,
            requestToken: (stop) => requestAccountToken(client, accountFor(ownAccount()), stop),
            readNodeUid: (stop) => nodeUid(client, ownAccount().node, stop),
            ...renewalMeans(means),
          },
          signal,
        ),
    });
    return [
      keep("the node agent's access", OWN_TOKEN, (account) => ({ ...account, validSeconds: LONGEST_TOKEN_SECONDS })),
      keep("the plugin's access", PLUGIN_TOKEN, (account) => ({ ...account, name: pluginAccount })),
    ];
  });
}

const own = tokenInFile(OWN_TOKEN);

function ownAccount(): TokenAccount {
  const account = boundAccount(own.readToken() ?? "");
  if (account !== undefined) return account;
  throw new PluginError(
    "config-invalid",
    `Cannot use token ${quoted(OWN_TOKEN)}: it is not a token of a service account that is bound to a Node`,
  );
}
