// Finds the servers that stores are tested with, Redis and MariaDB, or installs them.
import { firstOf, fromEnv, installWith } from "./packages.mjs";
import { which } from "../run.mjs";

const packages = {
  "apt-get": ["redis-server", "mariadb-server"],
  dnf: ["redis", "mariadb-server"],
  brew: ["redis", "mariadb"],
};
// Debian installs servers in folders that are only in root's PATH.
const inSbin = (name) => which(name) ?? firstOf([`/usr/sbin/${name}`, `/usr/libexec/${name}`]);

/** The paths of the servers' programs. A path is null if the program is missing and cannot be installed; `serversMissing` says why. */
export async function prepareServers() {
  let found = find();
  let reason = null;
  if (!isComplete(found)) {
    reason = await installWith(packages, "Redis and MariaDB");
    found = find();
  }
  return {
    ...found,
    serversMissing: isComplete(found) ? null : advice(reason ?? "the package manager does not have them"),
  };
}

const isComplete = (found) => Object.values(found).every(Boolean);

function find() {
  return {
    redisServer: fromEnv("REDIS_SERVER") ?? inSbin("redis-server"),
    mariadbd: fromEnv("MARIADBD") ?? inSbin("mariadbd"),
    mariadbInstallDb: fromEnv("MARIADB_INSTALL_DB") ?? inSbin("mariadb-install-db"),
  };
}

function advice(why) {
  return `Redis or MariaDB is missing and ${why}: install both servers, or set $REDIS_SERVER, $MARIADBD and $MARIADB_INSTALL_DB to their programs.`;
}
