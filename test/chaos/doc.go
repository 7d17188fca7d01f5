// Package chaos hurts real etcds, agents, controllers and management APIs at
// random while clients write and read, and judges what the clients saw and
// what is left in the end. What is hurt follows from a seed alone.
//
// It holds tests only; docs/chaos.md says how to run them at length.
package chaos
