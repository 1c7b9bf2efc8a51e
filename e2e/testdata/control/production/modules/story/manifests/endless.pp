# A compile that never ends.
class story::endless {
  story::spin()
}
