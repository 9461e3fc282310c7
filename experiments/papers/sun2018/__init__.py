"""Exhibits of Sun, Dong, Wang, Yu, Qin, Big Data 2018."""
