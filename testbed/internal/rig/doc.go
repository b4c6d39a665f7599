// Package rig is what the programs of testbed stand on: servers and databases,
// programs built once, child processes that tell their parent what they do
// before they do it, recovery as another process, and the question that decides
// everything: is what was reported true?
package rig
