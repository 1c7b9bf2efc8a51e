# The module's own name, so that tools that look for it find it.
class story {
}
