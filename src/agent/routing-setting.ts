/** Whether the agent of this node sets routes, tunnels and NAT, as its settings said when they could be read last. */
import type { RecordChange } from "../datastore/replica/subscription.ts";
import type { NodeAgentConfiguration } from "../model/node-agent-configuration.ts";
import { FollowedSettings } from "../routing/inputs.ts";

export interface SettingChanges {
  readonly configurations: readonly RecordChange<NodeAgentConfiguration>[];
}

export class RoutingSetting {
  private readonly settings: FollowedSettings;
  isEnabled = true;

  constructor(node: string) {
    this.settings = new FollowedSettings(node);
  }

  /** Returns whether it is another than before. */
  update({ configurations }: SettingChanges): boolean {
    const before = this.isEnabled;
    this.isEnabled = this.settings.facts(configurations).settings?.isEnabled ?? before;
    return this.isEnabled !== before;
  }
}
