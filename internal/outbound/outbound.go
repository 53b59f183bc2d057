// Package outbound guards the requests that svc makes because somebody asked
// for them: webhooks, embedders, remotes, exports. Whoever may name an
// address must not reach what only this machine or its network can.
//
// Names are no protection, as they may resolve to anything, and to something
// else a moment later. So the guard stands where a connection is made, sees
// the very address that is connected to, and sees it again after a redirect.
package outbound
