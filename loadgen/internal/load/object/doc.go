// Package object makes the objects of requests, or finds existing ones, and makes the
// operations on them. They may be of any resource.
//
// A Set is the objects of one resource of one load, spread over namespaces,
// with payloads of drawn sizes. It serves watches too. An operation, as
// NewOperation makes it for the request engine, is one verb or a weighted mix
// of verbs over several resources, made as one identity or as several tenants.
//
// Operation, tenant and object are drawn from the seed and the number of the
// arrival, without state, so that an arrival that was not sent does not change
// later ones. Four operations depend on earlier ones: a delete takes the object
// that has been whole for longest, a deletecollection the namespace; an update that must name a resourceVersion
// takes the next object that no other update of the load is writing; a get of
// objects that the load did not make takes one of those last listed. In a mix,
// reads and writes meet deletes: a 404 for a deleted object and a 409 for an
// update after a patch are counted as they come.
//
// Nothing is encoded while a load runs: paths and manifests are rendered before,
// and a request copies their pieces into the caller's buffers, with a number and a
// payload between. Answers are checked piece by piece and not kept: JSON to its
// last byte, protobuf by its magic number, compressed ones not at all.
//
// Unmeasured requests use a separate client (net/http), which retries; see asker.
package object
