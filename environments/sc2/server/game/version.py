"""The version of StarCraft II that the server states: the one of AlphaStar's replays."""

BUILD, DATA_VERSION = 75689, "B89B5D6FA7CBF6452E721311BFBC6CB2"
VERSION = f"4.10.0.{BUILD}"
