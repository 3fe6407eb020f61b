// Package workroot builds the root file system and the network of a workspace, in the
// launcher that serves it: what of the host is there, and sockets to the proxy.
package workroot
