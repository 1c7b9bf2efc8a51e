define sample::account (Integer $uid, Optional[String] $comment = undef) {
  user { "user ${name}": uid => $uid, comment => $comment }
  group { "group ${name}": gid => $uid, before => User["user ${name}"] }
}
