// Package s3gateway runs throw-away S3 servers for tests, demos and benchmarks:
// Versity's gateway, a server with conditional writes that hold, over a folder
// of its own, at a free loopback port.
//
// scripts/setup.sh s3gateway builds the program into the user's cache directory. A
// server lives no longer than the process that launched it: a watchdog stops it
// and removes its directory however that process ends, SIGKILL included.
package s3gateway
