//go:build !linux

// Package testdisk gives a test a small disk of its own, and fills disks. It does so on Linux.
package testdisk
