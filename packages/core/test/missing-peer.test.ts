import { expect, test } from "vitest";
import { TriremeError, missingPeer } from "@trireme/core";

test("a library that is missing is named with the command that installs it, and the cause is kept", async () => {
  const cause = new Error("not found");
  const refused = Promise.reject(cause).catch(missingPeer("@trireme/run/yaml", "yaml", "2.9.1"));
  await expect(refused).rejects.toThrow(TriremeError);
  await expect(refused).rejects.toMatchObject({
    code: "PEER",
    cause,
    message: "@trireme/run/yaml needs the package yaml; install it with: npm install yaml@2.9.1",
  });
});
