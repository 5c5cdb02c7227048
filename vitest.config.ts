import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: ["{packages,apps,tooling}/*/vitest.config.ts"],
    reporters: ["default", "@trireme/vitest-config/tally"],
  },
});
