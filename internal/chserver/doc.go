// Package chserver runs throw-away ClickHouse servers for tests, demos and
// benchmarks: own data directory, free loopback ports, a real engine.
//
// The program it runs is testbed/clickhouse/chserver; scripts/setup.sh fetches
// its engine and builds it into the user's cache directory. A server lives no
// longer than the process that launched it: it stops when its standard input
// ends, and a watchdog, which holds another pipe, removes its directory. Both
// work however the launching process ends, SIGKILL included.
package chserver
