package api

import "slices"

// Prefix is where the API begins.
const Prefix = "/api/v1"

// Operations is every operation, in the order of the reference: those of each area, as its file lists them.
func Operations() []Operation {
	return slices.Concat(
		certificateOperations(), codeOperations(), sourceOperations(), nodeOperations(), groupOperations(), reportOperations(), eventOperations(), taskOperations(),
		actionOperations(),
		queryOperations(), deliveryOperations(), compileOperations(), jobOperations(), actionCallOperations(), appOperations(),
		previewOperations(), releaseOperations(), noiseOperations(), policyOperations(), accessOperations(), auditOperations(),
		usageOperations(), clusterOperations(), setAsideOperations(), versionOperations(), descriptionOperations(),
	)
}

// listed describes the operations of an area.
func listed(ops ...interface{ Operation() Operation }) []Operation {
	all := make([]Operation, len(ops))
	for i, op := range ops {
		all[i] = op.Operation()
	}
	return all
}
