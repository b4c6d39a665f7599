// Package drevoserver runs throw-away drevo servers for tests, demos and
// benchmarks: own data directory, free loopback ports, the real engine.
//
// The program it runs is drevo-rig of testbed/drevo/engine, a Bolt front of our
// own over drevo's storage engine; scripts/setup.sh drevo builds it into the
// user's cache directory. A server lives no longer than the process that launched
// it: it ends when its standard input does, and a watchdog, which holds another
// pipe, removes its directory. Both work however the launching process ends,
// SIGKILL included.
package drevoserver
