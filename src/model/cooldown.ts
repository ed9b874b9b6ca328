/** The longest rest of released addresses that can be set, in seconds: releases are kept in the blocks for as long. */
export const LONGEST_COOLDOWN_SECONDS = 86_400;
